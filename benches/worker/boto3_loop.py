"""The loop of most guides in Python: PROXY_URL QUEUE_URL LOOPS. Prints how long it took, in microseconds."""
import json
import sys
import threading
import time

import boto3
from botocore.config import Config

proxy, queue, loops = sys.argv[1], sys.argv[2], int(sys.argv[3])


def client():
    return boto3.session.Session().client(
        "sqs", endpoint_url=proxy, region_name="us-east-1", aws_access_key_id="bench", aws_secret_access_key="bench",
        config=Config(max_pool_connections=4, retries={"max_attempts": 1}))


def drain(sqs):
    while messages := sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages"):
        for message in messages:
            json.loads(message["Body"])
        sqs.delete_message_batch(QueueUrl=queue, Entries=[
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]} for place, message in enumerate(messages)])


threads = [threading.Thread(target=drain, args=(client(),)) for _ in range(loops)]
start = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(int((time.perf_counter() - start) * 1_000_000))
