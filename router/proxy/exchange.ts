import type { HeaderList } from '../upstream/transport.ts'

/** One request to a provider path and the way back for its answer, as every host offers them. */
export interface Exchange {
  readonly method: string
  /** Path and query, as they came. */
  readonly target: string
  readonly headers: HeaderList
  /** The name that the request was sent to; undefined where it named none. */
  readonly host: string | undefined
  /** As the request announces it. */
  readonly contentLength: number | undefined
  /** Whether the head of the answer is out, so that nothing else can be answered any more. */
  readonly isStarted: boolean
  /** Whether the client left. */
  readonly isGone: boolean
  /** The whole body. Rejects when it is larger than the limit, and when the client leaves before its end. */
  readBody(maxBytes: number): Promise<Uint8Array<ArrayBuffer>>
  /** The body as it comes, read no faster than it is taken; null without one. */
  streamBody(): AsyncIterable<Uint8Array> | null
  /** An answer that is known whole. */
  answer(status: number, headers: HeaderList, pieces: readonly Uint8Array[]): void
  /** The head of an answer that follows in pieces. */
  head(status: number, headers: HeaderList): void
  /** False once the client has enough to read. */
  write(chunk: Uint8Array): boolean
  /** Calls each time that a client which had enough wants more. */
  onDrain(call: () => void): void
  end(last?: Uint8Array): void
  /** Breaks the answer off so that no client takes it for whole. */
  cut(error: unknown): void
  /** Calls when the client leaves before the answer has ended, or at once if it has left. */
  onGone(call: () => void): void
}
