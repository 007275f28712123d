/** A stage for a body, in the hands of a test. */
import type { BodyStage, StageEvents } from "../../src/model/leg.ts";

/** A stage that keeps everything until it is told to finish, and passes on how much it was. */
export function stageOf() {
  const events: StageEvents[] = [];
  const made: { calls: string[]; finish(): void }[] = [];
  const stage: BodyStage = (next, told) => {
    let bytes = 0;
    const calls: string[] = [];
    events.push(told);
    made.push({
      calls,
      finish() {
        next.write(Buffer.from(String(bytes)));
        next.end([]);
      },
    });
    return {
      write(data) {
        bytes += data.length;
        return false;
      },
      end: () => undefined,
      drained: () => void calls.push("drained"),
      close: () => void calls.push("close"),
    };
  };
  return { events, made, stage };
}
