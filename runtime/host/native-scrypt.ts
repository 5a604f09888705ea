import { scrypt } from 'node:crypto'
import type { Scrypt } from '../auth/password.ts'

/** Node's own, on its thread pool: it neither holds up the event loop nor fills the JavaScript heap. */
export const nativeScrypt: Scrypt = (password, salt, bytes, { N, r, p }) =>
  new Promise((resolve, reject) => {
    // Twice what the algorithm takes (128·N·r); the default limit of 32 MiB is just below it.
    scrypt(password, salt, bytes, { N, r, p, maxmem: 256 * N * r + 1024 * 1024 }, (error, key) => {
      if (error) reject(error)
      else resolve(key)
    })
  })
