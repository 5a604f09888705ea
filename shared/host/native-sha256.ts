import { createHash, hash } from 'node:crypto'
import type { Sha256 } from '../../shared/sign/sha256.ts'

/** Node's own SHA-256: about ten times as fast as the portable one. */
export const nativeSha256: Sha256 = Object.assign((bytes: Uint8Array) => hash('sha256', bytes, 'buffer'), {
  hex: (bytes: Uint8Array) => hash('sha256', bytes, 'hex'),
  create: () => createHash('sha256'),
})
