/** A page in headless Chromium, with what it loads by itself: prints what came; any failure ends it with 1. */
import { join } from "node:path";
import { chromium } from "playwright-core";

const [host] = process.argv.slice(2);

const context = await chromium.launchPersistentContext(join(process.cwd(), "profile"), {
  executablePath: "/usr/bin/chromium",
  headless: true,
  timeout: 60_000,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  const page = await context.newPage();
  const answer = await page.goto(`https://${host}/page`, { timeout: 30_000 });
  if (!answer.ok()) throw new Error(`${answer.status()} ${await answer.text()}`);
  const got = await page.evaluate(useEverything);
  console.log(JSON.stringify(got));
  const expected = { protocol: "h2", fetched: "hello", socket: "echo", events: ["one", "two"] };
  if (JSON.stringify(got) !== JSON.stringify(expected)) throw new Error("That is not what the origin sent");
  console.log("hello");
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await context.close();
}

/** In the page. */
async function useEverything() {
  const posted = await fetch("/count", { method: "POST", body: "12345" });
  const fetched = (await posted.text()) === "hello 5\n" ? "hello" : `${posted.status}`;
  const socket = await new Promise((resolve, reject) => {
    const one = new WebSocket(`wss://${location.host}/socket`);
    one.onerror = () => reject(new Error("The WebSocket failed"));
    one.onopen = () => one.send("echo");
    one.onmessage = ({ data }) => {
      one.close();
      resolve(data);
    };
  });
  // The origin never ends it: what arrives, arrives as it is written.
  const events = await new Promise((resolve, reject) => {
    const source = new EventSource("/events");
    const seen = [];
    source.onerror = () => reject(new Error("The event stream failed"));
    source.onmessage = ({ data }) => {
      seen.push(data);
      if (seen.length < 2) return;
      source.close();
      resolve(seen);
    };
  });
  const [{ nextHopProtocol: protocol }] = performance.getEntriesByType("navigation");
  return { protocol, fetched, socket, events };
}
