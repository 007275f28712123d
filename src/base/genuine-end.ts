/** Tells the end that a peer sent from the one that `node:http2` makes up when a stream is reset. */

/** What is needed of an Http2Stream. */
export interface EndingStream {
  readonly closed: boolean;
  push(chunk: unknown, encoding?: BufferEncoding): boolean;
}

export interface Ending {
  /** END_STREAM was received before anything closed the stream. */
  readonly genuine: boolean;
}

/**
 * A stream that is reset, or whose connection goes, ends like a whole one: `'end'` fires. But `push(null)` comes
 * while the stream is not yet `closed` in the genuine case alone. Reading `closed` at `'end'` is too late where the
 * reader was paused. `whole`: END_STREAM came with the head.
 */
export function watchEnd(stream: EndingStream, whole: boolean): Ending {
  const ending = { genuine: whole || (endedAlready(stream) && !stream.closed) };
  const push = stream.push;
  stream.push = function pushSeen(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk === null && !stream.closed) ending.genuine = true;
    return push.call(stream, chunk, encoding);
  };
  return ending;
}

/** Head and end may have come in one piece, before anybody could watch; no public property says so. */
function endedAlready(stream: EndingStream): boolean {
  const { _readableState } = stream as { readonly _readableState?: { readonly ended: boolean } };
  return _readableState?.ended === true;
}
