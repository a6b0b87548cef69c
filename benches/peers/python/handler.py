"""The same work with Powertools for AWS Lambda (Python): a batch of orders, each charged behind an idempotency record.

What `make bench` and `make peers` compare with. It is written as Powertools' own documentation shows it; records run
one after the other, which is the library's default. `QUEUE_TYPE=fifo` takes its processor for FIFO queues,
`VALIDATED_FIELDS` (JMESPath) its payload validation, and `PROVIDER_TIMEOUT` is in seconds.
"""
import json
import os
import urllib.request

import boto3
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    SqsFifoPartialProcessor,
    process_partial_response,
)
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent_function

fifo = os.environ.get("QUEUE_TYPE") == "fifo"
processor = SqsFifoPartialProcessor() if fifo else BatchProcessor(event_type=EventType.SQS)
table = boto3.client("dynamodb")
persistence = DynamoDBPersistenceLayer(table_name=os.environ["LEDGER_TABLE"], key_attr="pk", boto3_client=table)
validated = os.environ.get("VALIDATED_FIELDS", "")
config = IdempotencyConfig(event_key_jmespath="order_id", payload_validation_jmespath=validated)
timeout = float(os.environ.get("PROVIDER_TIMEOUT", "10"))


@idempotent_function(data_keyword_argument="order", persistence_store=persistence, config=config)
def charge(order):
    minor = round(float(order["amount"]) * 100)
    body = json.dumps({"order_id": order["order_id"], "attempt": 1, "amount_minor": minor, "currency": order["currency"]})
    headers = {
        "Idempotency-Key": '"' + order["order_id"] + '"',
        "Authorization": "Bearer " + os.environ["GATEWAY_SECRET"],
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(os.environ["GATEWAY_URL"], body.encode(), headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        charged = json.load(answer)
    if charged["status"] != "succeeded":
        raise RuntimeError(charged["status"])
    return {"charge_id": charged["id"]}


def record_handler(record):
    charge(order=json.loads(record.body))


def handler(event, context):
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
