"""Deploys template.yaml into ministack and sends 40 messages through the real bootstrap.

usage: end_to_end.py standard|fifo BOOTSTRAP MINISTACK

Every good order must be charged once, every poison message must end in the dead-letter queue, and nothing else may
be left anywhere.
"""

import collections
import io
import json
import os
import signal
import sys
import tempfile
import time
import urllib.request
import zipfile

import boto3
from botocore.config import Config
from samtranslator.yaml_helper import yaml_parse

import orders
from peer import Peer
from provider import Provider

STACK = "charge-once"
PATIENCE = 120  # seconds; a run takes a few


def main():
    queue_type, bootstrap, ministack = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the emulator is stopped then too
    provider = Provider()
    with tempfile.TemporaryDirectory() as folder, Emulator(ministack, folder) as emulator:
        began = time.monotonic()
        stack = deploy(emulator, queue_type, bootstrap, provider.url)
        print(f"{queue_type}: deployed in {time.monotonic() - began:.1f} s")
        began = time.monotonic()
        run(emulator, stack, queue_type, provider)
        print(f"{queue_type}: settled in {time.monotonic() - began:.1f} s")


class Emulator(Peer):
    """ministack; it hands its own environment on to the function."""

    def __init__(self, program, folder):
        self.log_path = os.path.join(folder, "ministack.log")
        with open(self.log_path, "wb") as log:
            super().__init__(
                [program],
                folder,
                log,
                {"PATH": os.environ["PATH"]},
                HOME=folder,
                TMPDIR=folder,
                BIND_HOST="127.0.0.1",
                MINISTACK_HOST="127.0.0.1",
                GATEWAY_PORT="{port}",
                AWS_ENDPOINT_URL="http://127.0.0.1:{port}",
            )

    def __exit__(self, problem, *rest):
        if problem:
            print(self.log()[-6000:], file=sys.stderr)
        super().__exit__(problem, *rest)

    def listens(self):
        assert self.process.poll() is None, f"the emulator ended: {self.log()}"
        try:
            return urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=1).status == 200
        except OSError:
            return False

    def client(self, service):
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"max_attempts": 1}),
        )

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


def until(what, holds):
    """Polls until `holds()`; the one way in which this script waits."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE} s for {what}"
        time.sleep(0.2)


def deploy(emulator, queue_type, bootstrap, gateway_url):
    """The stack's outputs."""
    s3, cloudformation = emulator.client("s3"), emulator.client("cloudformation")
    s3.create_bucket(Bucket="code")
    s3.put_object(Bucket="code", Key="bootstrap.zip", Body=zipped(bootstrap))
    s3.put_object(Bucket="code", Key="template.json", Body=json.dumps(template()).encode())
    parameters = {
        "QueueType": queue_type,
        "Architecture": "x86_64",
        "Gateway": "http",
        "GatewayUrl": gateway_url,
        "MaxReceiveCount": "5",
        "BackoffBase": "1s",
    }
    request = dict(
        StackName=STACK,
        TemplateURL=f"{emulator.url}/code/template.json",
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        Parameters=[dict(ParameterKey=key, ParameterValue=value) for key, value in parameters.items()],
    )
    refused_without_url(cloudformation, request)
    cloudformation.create_stack(**request)
    stack = lambda: cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
    until("the stack", lambda: not stack()["StackStatus"].endswith("IN_PROGRESS"))
    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    reasons = [event.get("ResourceStatusReason") for event in events if "FAILED" in event["ResourceStatus"]]
    assert stack()["StackStatus"] == "CREATE_COMPLETE", reasons
    return {output["OutputKey"]: output["OutputValue"] for output in stack()["Outputs"]}


def refused_without_url(cloudformation, request):
    """The template's own rules refuse contradictory parameters before anything is made."""
    parameters = [one for one in request["Parameters"] if one["ParameterKey"] != "GatewayUrl"]
    try:
        cloudformation.create_stack(**{**request, "StackName": "refused", "Parameters": parameters})
    except cloudformation.exceptions.ClientError as error:
        assert "The http gateway needs GatewayUrl" in str(error), error
    else:
        raise AssertionError("GATEWAY=http without a URL was not refused")


def template():
    """template.yaml with its code in S3, as `sam package` leaves it."""
    with open("template.yaml", encoding="utf-8") as file:
        template = yaml_parse(file.read())
    resources = template["Resources"]
    function = resources["ChargeFunction"]["Properties"]
    function["CodeUri"] = "s3://code/bootstrap.zip"
    # The emulator compares this as a number, and a parameter's value arrives as text.
    function["Events"]["Orders"]["Properties"]["ScalingConfig"] = {"MaximumConcurrency": 10}
    for name in [name for name, resource in resources.items() if unknown_to_emulator(resource)]:
        del resources[name]
    return template


def unknown_to_emulator(resource):
    """What ministack 1.5 refuses: composite alarms, saved queries and alarms on an expression. None handles orders."""
    refused = ("AWS::CloudWatch::CompositeAlarm", "AWS::Logs::QueryDefinition")
    return resource["Type"] in refused or "Metrics" in resource["Properties"]


def zipped(bootstrap):
    """The code as Lambda takes it; a zip (of `make build`) is taken as it is."""
    if bootstrap.endswith(".zip"):
        with open(bootstrap, "rb") as file:
            return file.read()
    entry = zipfile.ZipInfo("bootstrap")
    entry.external_attr = 0o755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive = io.BytesIO()
    with open(bootstrap, "rb") as file, zipfile.ZipFile(archive, "w", compresslevel=1) as zip_file:
        zip_file.writestr(entry, file.read())
    return archive.getvalue()


def run(emulator, stack, queue_type, provider):
    sqs = emulator.client("sqs")
    sent = []
    for wave in orders.waves():
        send(sqs, stack["QueueUrl"], wave, queue_type == "fifo", len(sent))
        sent += wave
        poison = sum(message.poison for message in sent)
        settled = lambda: depth(sqs, stack["QueueUrl"]) == 0 and depth(sqs, stack["DlqUrl"]) >= poison
        until(f"{len(sent)} messages to settle, of which {poison} in the DLQ", settled)
    charges = collections.Counter(provider.charges)
    assert charges == collections.Counter(orders.GOOD), f"charged {charges}"
    dead = drain(sqs, stack["DlqUrl"])
    expected = collections.Counter(message.body for message in sent if message.poison)
    assert collections.Counter(message["Body"] for message in dead) == expected, f"in the DLQ: {dead}"
    records = emulator.client("dynamodb").scan(TableName=stack["LedgerTableName"])["Items"]
    states = collections.Counter(record["state"]["S"] for record in records)
    assert states == {"PAID": len(orders.GOOD)}, f"in the ledger: {states}"
    if queue_type == "fifo":
        in_order(provider.charges, sent)
        assert all("reason" in message.get("MessageAttributes", {}) for message in dead), f"no reason in {dead}"
    print(f"{queue_type}: {len(sent)} messages, {len(provider.charges)} charges, {len(dead)} dead letters, 0 left")


def send(sqs, url, messages, fifo, already):
    for start in range(0, len(messages), 10):
        entries = []
        for number, message in enumerate(messages[start : start + 10], start=start):
            entry = {"Id": str(number), "MessageBody": message.body}
            if fifo:
                entry |= {"MessageGroupId": message.group, "MessageDeduplicationId": f"send-{already + number}"}
            entries.append(entry)
        failed = sqs.send_message_batch(QueueUrl=url, Entries=entries).get("Failed")
        assert not failed, f"not sent: {failed}"


def depth(sqs, url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"]
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
    return sum(int(attributes[name]) for name in names)


def drain(sqs, url):
    messages = []
    while batch := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]).get("Messages"):
        for message in batch:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        messages += batch
    return messages


def in_order(charges, sent):
    """A FIFO group is charged in the order it was sent."""
    group = {json.loads(message.body)["order_id"]: message.group for message in sent if not message.poison}
    for name in set(group.values()):
        wanted = [order for order in orders.GOOD if group[order] == name]
        got = [order for order in charges if group[order] == name]
        assert got == wanted, f"group {name}: charged {got}, sent {wanted}"


main()
