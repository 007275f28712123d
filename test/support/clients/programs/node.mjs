/** One exchange by the client named first, printing what came; any failure ends it with 1. */
import { Agent } from "node:https";

const [client, host] = process.argv.slice(2);
const url = `https://${host}/hello`;

const CLIENTS = {
  async fetch() {
    return await textOf(await fetch(url));
  },
  async undici() {
    const { EnvHttpProxyAgent, request } = await import("undici");
    const { statusCode, body } = await request(url, { dispatcher: new EnvHttpProxyAgent() });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`);
    return text;
  },
  async axios() {
    const { default: axios } = await import("axios");
    return (await axios.get(url)).data;
  },
  async ws() {
    const { WebSocket } = await import("ws");
    const agent = new Agent({ proxyEnv: process.env });
    const socket = new WebSocket(`wss://${host}/socket`, { agent });
    return await new Promise((resolve, reject) => {
      socket.on("error", reject);
      socket.on("open", () => socket.send("hello"));
      socket.on("message", (bytes) => {
        socket.close();
        resolve(String(bytes));
      });
    });
  },
  async grpc() {
    const { Client, credentials } = await import("@grpc/grpc-js");
    const client = new Client(`${host}:443`, credentials.createSsl());
    const same = (bytes) => bytes;
    return await new Promise((resolve, reject) => {
      const options = { deadline: Date.now() + 10_000 };
      client.makeUnaryRequest(
        "/test.Echo/Unary",
        same,
        same,
        Buffer.from("hello"),
        options,
        (error, answer) => {
          client.close();
          if (error === null) resolve(String(answer));
          else reject(error);
        },
      );
    });
  },
};

async function textOf(answer) {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return text;
}

console.log(await CLIENTS[client]());
