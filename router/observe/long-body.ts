import { toHex } from '../../shared/sign/bytes.ts'
import { type RunningSha256, runningSha256 } from '../../shared/sign/sha256.ts'
import {
  type Hashing,
  hashStart,
  type PassedCall,
  type RequestPart,
  unreadRequestPart,
} from '../receipt/request-part.ts'

/** A body that is hashed on its way, since it is too long to be kept until its receipt is made. */
export function longBody(hashing: Hashing, before: readonly Uint8Array[]) {
  const hashes = { prompt: started(hashing, 'prompt'), body: started(hashing, 'body') }
  let size = 0
  const push = (chunk: Uint8Array): void => {
    size += chunk.length
    hashes.prompt.update(chunk)
    hashes.body.update(chunk)
  }
  before.forEach(push)
  return {
    push,
    /** What the receipt says of the request; ask once, after its last byte. */
    part: (call: PassedCall): RequestPart =>
      unreadRequestPart(
        call,
        { size, prompt_hash: toHex(hashes.prompt.digest()), body_sha256_in: toHex(hashes.body.digest()) },
        hashing,
      ),
  }
}

function started(hashing: Hashing, purpose: 'prompt' | 'body'): RunningSha256 {
  const hash = runningSha256(hashing.sha256)
  for (const bytes of hashStart(hashing, purpose)) hash.update(bytes)
  return hash
}
