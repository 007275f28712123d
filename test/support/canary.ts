/** One secret for a whole test, and a ledger of every place where its bytes were seen. */
import { randomBytes } from "node:crypto";

export interface Canary {
  /** What the tests configure as the secret. It changes under percent-encoding and base64 on purpose. */
  readonly secret: string;
  /** Looks through bytes as they come; one watch for each stream, named for the message. */
  watch(where: string): Watch;
  /** Throws, naming the places, if the secret was seen where it must not be. */
  assertUnseen(): void;
}

export interface Watch {
  /** Bytes that were cut apart on their way are found all the same. */
  see(bytes: Buffer | string): void;
}

export function createCanary(): Canary {
  const secret = `canary+${randomBytes(12).toString("hex")}/=end`;
  const forms = formsOf(secret);
  const longest = Math.max(...forms.map((form) => form.length));
  const sightings = new Set<string>();
  return {
    secret,
    watch(where) {
      let tail = "";
      return {
        see(bytes) {
          const text = tail + (typeof bytes === "string" ? bytes : bytes.toString("latin1"));
          if (forms.some((form) => text.includes(form))) sightings.add(where);
          tail = text.slice(-longest);
        },
      };
    },
    assertUnseen() {
      if (sightings.size > 0) throw new Error(`The canary was seen in: ${[...sightings].join(", ")}`);
    },
  };
}

/** The secret as it is, percent-encoded, in hex, and in base64 at each of its three alignments. */
function formsOf(secret: string): readonly string[] {
  const encoded = encodeURIComponent(secret);
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.from("x".repeat(offset) + secret).toString("base64");
    // The characters at both ends also depend on what stands beside the secret.
    return text.slice(offset === 0 ? 0 : 4, -4);
  });
  return [secret, encoded, encoded.toLowerCase(), Buffer.from(secret).toString("hex"), ...base64];
}
