import { chmod, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { dirname } from 'node:path'
import { z } from 'zod'
import { poolKeyAad } from '../../runtime/nodes/sealed-payloads.ts'
import { EnvError } from '../../shared/env/read-env.ts'
import { makeFolder } from '../../shared/host/make-folder.ts'
import { putInPlace, readOperatorText } from '../../shared/host/operator-file.ts'
import { readJson } from '../../shared/json/read-json.ts'
import { fromBase64, toBase64, utf8 } from '../../shared/sign/bytes.ts'
import { type Signer, signer } from '../../shared/sign/ed25519.ts'
import { sleep } from '../../shared/time/sleep.ts'
import { TunnelRefusal } from '../../shared/tunnel/protocol.ts'
import { type BoxKeys, newBoxKeys, openSealed } from '../../shared/tunnel/sealed-payload.ts'
import { VERSION } from '../../shared/version.ts'
import { redialDelay } from './redial-delay.ts'
import type { NodeTransport } from './transport.ts'

export interface Identity {
  nodeId: string
  tenantId: string
  pool: string
  signSeed: Uint8Array<ArrayBuffer>
  signer: Signer
  poolKeys: BoxKeys
  sealKey: Uint8Array<ArrayBuffer>
}

const key = z
  .base64()
  .transform(text => fromBase64(text))
  .refine(({ length }) => length === 32)
const stored = z.object({
  version: z.literal(1),
  nodeId: z.string(),
  tenantId: z.string(),
  pool: z.string(),
  signSeed: key,
  boxKey: key,
  poolPublic: key,
  poolPrivate: key,
})

/** The node as it was enrolled; undefined before. No other account may read the file. */
export async function readIdentity(path: string): Promise<Identity | undefined> {
  let text: string
  try {
    text = await readOperatorText(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  await chmod(path, 0o600)
  const { nodeId, tenantId, pool, signSeed, poolPublic, poolPrivate } = storedIn(path, text)
  return {
    nodeId,
    tenantId,
    pool,
    signSeed,
    signer: await signer(signSeed),
    poolKeys: { publicKey: poolPublic, privateKey: poolPrivate },
    sealKey: await sealKeyFrom(signSeed),
  }
}

function storedIn(path: string, text: string): z.output<typeof stored> {
  try {
    return stored.parse(readJson(text))
  } catch (cause) {
    if (!(cause instanceof SyntaxError || cause instanceof z.ZodError)) throw cause
    throw new EnvError(`${path} is not the identity of a node: restore it, or move it away and enrol a new node`)
  }
}

/** Uses the token once: makes the keys of this node here, and keeps them before anything else happens. */
export async function enrol(
  path: string,
  token: string,
  name: string,
  transport: NodeTransport,
  wait: (ms: number) => Promise<void> = sleep,
): Promise<Identity> {
  const signSeed = crypto.getRandomValues(new Uint8Array(32))
  const own = await signer(signSeed)
  const box = await newBoxKeys()
  const reply = await whenReady(wait, () =>
    transport.enrol({
      token,
      name,
      signKey: own.publicKey,
      boxKey: box.publicKey,
      version: VERSION,
      os: platform(),
      arch: arch(),
    }),
  )
  const { nodeId, tenantId, pool } = reply
  const poolPrivate = await openSealed(box, reply.poolKeySealed, poolKeyAad(tenantId, pool))
  const poolKeys = await boxKeysFrom(poolPrivate)
  await write(path, {
    version: 1,
    nodeId,
    tenantId,
    pool,
    signSeed: toBase64(signSeed),
    boxKey: toBase64(box.privateKey),
    poolPublic: toBase64(poolKeys.publicKey),
    poolPrivate: toBase64(poolPrivate),
  })
  return { nodeId, tenantId, pool, signSeed, signer: own, poolKeys, sealKey: await sealKeyFrom(signSeed) }
}

const TRIES = 6

/** The key of a pool comes from one of its nodes; where several start together, that one may not have dialled in yet. */
async function whenReady<T>(wait: (ms: number) => Promise<void>, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof TunnelRefusal) || error.code !== 'not_ready' || tries === TRIES) throw error
      await wait(redialDelay(tries, Math.random))
    }
  }
}

/** The same for all nodes of a pool, for what they keep in one store. */
export const poolSealKey = ({ poolKeys }: Pick<Identity, 'poolKeys'>): Promise<Uint8Array<ArrayBuffer>> =>
  sealKeyFrom(poolKeys.privateKey)

/** The key of what the node is given to keep follows from its seed, which is nowhere but in its file (HKDF, RFC 5869). */
async function sealKeyFrom(seed: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const base = await crypto.subtle.importKey('raw', seed, 'HKDF', false, ['deriveBits'])
  const info = utf8('waybill/node-credentials/v1')
  const how = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }
  return new Uint8Array(await crypto.subtle.deriveBits(how, base, 256))
}

/** The public half follows from the private one. */
async function boxKeysFrom(privateKey: Uint8Array<ArrayBuffer>): Promise<BoxKeys> {
  const { createPrivateKey, createPublicKey } = await import('node:crypto')
  const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex')
  const der = Buffer.concat([prefix, privateKey])
  const made = createPublicKey(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }))
  const raw = made.export({ format: 'der', type: 'spki' }).subarray(-32)
  return { publicKey: Uint8Array.from(raw), privateKey }
}

/** On the disk before it has its name, and with its name before anything goes on: the token is used up. */
async function write(path: string, content: object): Promise<void> {
  await makeFolder(dirname(path), 0o700)
  await writeFile(`${path}.new`, JSON.stringify(content), { mode: 0o600 })
  await putInPlace(`${path}.new`, path)
}
