"""Seeds for the fuzz targets: `fuzz_seeds.py FOLDER` writes FOLDER/TARGET/NAME from the sample events and the cases."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = pathlib.Path(sys.argv[1])
LARGEST = 4096  # longer inputs make the fuzzer slow and find nothing more

INTENT = {
    "id": "pi_1", "object": "payment_intent", "amount": 4990, "currency": "eur",
    "metadata": {"order_id": "o-1", "attempt": "1"}, "latest_charge": None,
    "cancellation_reason": None, "last_payment_error": None,
}
INTENTS = [
    {"status": "requires_confirmation"},
    {"status": "succeeded", "latest_charge": "ch_1"},
    {"status": "succeeded", "latest_charge": {"id": "ch_1"}},
    {"status": "processing"},
    {"status": "requires_action"},
    {"status": "requires_capture"},
    {"status": "requires_payment_method", "latest_charge": "ch_1",
     "last_payment_error": {"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds"}},
    {"status": "canceled", "cancellation_reason": "abandoned"},
    {"status": "canceled", "cancellation_reason": "automatic"},
    {"status": "canceled", "cancellation_reason": "requested_by_customer"},
]
ERRORS = [
    (400, {"type": "idempotency_error"}),
    (400, {"type": "invalid_request_error", "code": "parameter_missing"}),
    (400, {"type": "invalid_request_error", "code": "livemode_mismatch"}),
    (402, {"type": "card_error", "code": "card_declined", "decline_code": "do_not_honor",
           "payment_intent": {**INTENT, "status": "requires_payment_method"}}),
    (401, {"type": "invalid_request_error"}), (403, {"type": "invalid_request_error"}),
    (404, {"type": "invalid_request_error", "code": "resource_missing"}),
    (409, {"type": "idempotency_error"}),
    (429, {"type": "invalid_request_error", "code": "lock_timeout"}), (429, {"type": "rate_limit"}),
    (500, {"type": "api_error"}),
]
HTTP = [
    (200, {"id": "c-1", "status": "succeeded"}), (200, {"id": "c-1", "status": "processing"}),
    (200, {"id": "c-1", "status": "failed", "code": "card_declined"}), (200, {"status": "none"}),
    (200, {"id": "c-1", "status": "succeeded", "attempt": 2}), (201, ["c-1", "succeeded"]), (200, None),
    (400, {"code": "amount_too_small"}), (402, {"code": "insufficient_funds"}), (404, {}), (409, {}), (422, {}),
    (401, {}), (403, {}), (429, {}), (500, {}), (503, {}), (302, {}), (408, {}),
]
AMOUNTS = ["49.90", "0", "-1", "0.01", "999999.99", "1000000.00", "1.005", "100.00", "1e2", "01", "1.", "9" * 40]
SETTINGS = ["LEDGER_TABLE=t", "GATEWAY=stripe", "GATEWAY=http", "GATEWAY_URL=http://127.0.0.1:1/c",
            "GATEWAY_URL=https://u:p@pay.example", "GATEWAY_SECRET=sk_test_1", "GATEWAY_SECRET_ARN=arn:aws:s",
            "GATEWAY_ACCOUNT=acct_1", "GATEWAY_KEY_WINDOW=20h", "GATEWAY_LOOKUP=on", "RECHARGE_AFTER_LOOKUP=on",
            "DEFAULT_CURRENCY=EUR", "MAX_AMOUNT_MINOR=1000", "CONCURRENCY=10", "CHARGE_TIMEOUT=500ms",
            "LEASE_SECONDS=60", "BACKOFF_BASE=5s", "BACKOFF_CAP=900s", "MAX_RECEIVE_COUNT=5", "POISON_MODE=dlq",
            "DLQ_URL=https://sqs.eu-west-1.amazonaws.com/1/d", "DECLINED=ack", "PAYLOAD_BUCKETS=a,b",
            "QUEUE_URL=https://sqs.eu-west-1.amazonaws.com/1/q", "RECORD_DAYS=180",
            "LEDGER_EPOCH=2026-01-01T00:00:00Z", "LOG_LEVEL=debug", "SERVICE_NAME=s",
            "AWS_LAMBDA_FUNCTION_TIMEOUT=30"]
S3_POINTER = '["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"b","s3Key":"k"}]'


def answers(given):
    for status, body in given:
        for pause in ("", "120", "Fri, 15 Jan 2027 08:01:30 GMT") if status in (429, 503) else ("",):
            yield f"{status}\n{pause}\n{json.dumps(body, separators=(',', ':'))}"


def events():
    files = sorted([*ROOT.glob("events/*.json"), *ROOT.glob("tests/cases/*.json")])
    read = (json.loads(file.read_text()) for file in files)
    return [event.get("event", event) for event in read if "event_base64" not in event]


def bodies(event):
    records = event.get("Records") or []
    return [record["body"] for record in records if isinstance(record, dict) and isinstance(record.get("body"), str)]


def write(target, seeds):
    folder = OUT / target
    folder.mkdir(parents=True, exist_ok=True)
    small = sorted({seed for seed in seeds if len(seed) <= LARGEST})
    for number, seed in enumerate(small):
        (folder / f"seed-{number:03}").write_bytes(seed.encode(errors="surrogatepass"))


every = events()
inside = [body for event in every for body in bodies(event)]
write("event", [json.dumps(event, separators=(",", ":")) for event in every] + ["{}", '{"Records":null}'])
write("envelope", [*inside, S3_POINTER, '{"Records":[]}', '{"Event":"s3:TestEvent"}'])
write("order", inside)
write("money", [chr(pick) + amount for pick in range(5) for amount in AMOUNTS])
write("settings", [*SETTINGS, "\n".join(SETTINGS)])
write("http_answer", answers(HTTP))
write("stripe_answer", [*answers((200, {**INTENT, **intent}) for intent in INTENTS),
                        *answers((status, {"error": error}) for status, error in ERRORS)])
