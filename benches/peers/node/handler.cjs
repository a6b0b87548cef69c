// The same work with Powertools for AWS Lambda (TypeScript): a batch of orders, each charged behind an idempotency
// record. Written as its documentation shows it, with the sequential processor, as beside it in Python.
const http = require("node:http");
const { BatchProcessor, EventType, processPartialResponse } = require("@aws-lambda-powertools/batch");
const { IdempotencyConfig, makeIdempotent } = require("@aws-lambda-powertools/idempotency");
const { DynamoDBPersistenceLayer } = require("@aws-lambda-powertools/idempotency/dynamodb");

const processor = new BatchProcessor(EventType.SQS);
const persistenceStore = new DynamoDBPersistenceLayer({ tableName: process.env.LEDGER_TABLE, keyAttr: "pk" });
const config = new IdempotencyConfig({ eventKeyJmesPath: "order_id" });
const agent = new http.Agent({ keepAlive: true });

function post(url, headers, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: "POST", agent, headers, timeout: 10_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece) => (text += piece));
      response.on("end", () => (response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text))));
    });
    request.on("error", reject);
    request.end(body);
  });
}

const charge = makeIdempotent(
  async (order) => {
    const body = JSON.stringify({
      order_id: order.order_id,
      attempt: 1,
      amount_minor: Math.round(order.amount * 100),
      currency: order.currency,
    });
    const headers = {
      "Idempotency-Key": `"${order.order_id}"`,
      Authorization: `Bearer ${process.env.GATEWAY_SECRET}`,
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(body),
    };
    return { charge_id: (await post(process.env.GATEWAY_URL, headers, body)).id };
  },
  { persistenceStore, config },
);

const recordHandler = async (record) => {
  await charge(JSON.parse(record.body));
};

exports.handler = async (event, context) => {
  config.registerLambdaContext(context);
  return processPartialResponse(event, recordHandler, processor, { context, processInParallel: false });
};
