// The loop of a Lambda runtime for the handler beside this file: aws-lambda-ric, which does the same, must be compiled
// where it is installed. usage: node runtime.cjs NODE_MODULES
const http = require("node:http");
const Module = require("node:module");

process.env.NODE_PATH = process.argv[2];
Module._initPaths();
const { handler } = require("./handler.cjs");

const [host, port] = process.env.AWS_LAMBDA_RUNTIME_API.split(":");
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

function call(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
    const request = http.request({ host, port, method, path: `/2018-06-01/runtime/${path}`, agent, headers }, (response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("end", () => resolve({ headers: response.headers, text: Buffer.concat(pieces).toString() }));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function main() {
  for (;;) {
    const { headers, text } = await call("GET", "invocation/next");
    const id = headers["lambda-runtime-aws-request-id"];
    const context = {
      awsRequestId: id,
      functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
      getRemainingTimeInMillis: () => Number(headers["lambda-runtime-deadline-ms"]) - Date.now(),
    };
    try {
      await call("POST", `invocation/${id}/response`, JSON.stringify(await handler(JSON.parse(text), context)));
    } catch (error) {
      await call("POST", `invocation/${id}/error`, JSON.stringify({ errorType: error.name, errorMessage: String(error.stack) }));
    }
  }
}

main();
