import { open } from 'node:fs/promises'
import { namesProxy } from '../../../shared/env/read-env.ts'
import { writerIsGone } from '../../../shared/host/writer-name.ts'
import type { ReceiptStorage } from '../../receipts.ts'
import type { LineSink } from '../../traces/known-copies.ts'
import { readSigningKey } from '../signing-key.ts'
import { openSpillFile } from '../spill-file.ts'
import type { ReceiptLocation } from './messages.ts'

/** A writer beside the receipts meets a sync of 8 MiB now and then instead of one of 32. */
export const RECEIPT_LOG_PAGES = 1000

/** Everything beside the database that receipts are kept with: the key, the spill file, the copies of checkpoints. */
export async function openReceiptStorage(
  place: ReceiptLocation,
): Promise<{ receiptStorage: ReceiptStorage; close(): Promise<void> }> {
  const { durable, holder, anchorFile } = place
  const network =
    place.collector && namesProxy(process.env)
      ? (await import('../../../shared/host/proxy-agent.ts')).networkOf(process.env)
      : undefined
  const collector = place.collector && { ...place.collector, fetch: network?.fetch }
  const path = localPath(place.address)
  const signer = await readSigningKey({ key: place.signingKey, keyFile: place.signingKeyFile, dbPath: path })
  if (place.writer !== undefined) {
    const { remoteWriter } = await import('../processes/remote-writer.ts')
    const to = place.writer
    const writer: ReceiptStorage['writer'] = deps => remoteWriter({ ...deps, path: to, durable })
    return { receiptStorage: { durable, ...(signer && { signer }), writer, collector }, close: async () => undefined }
  }
  const spill = durable && path !== undefined ? await openSpillFile(path) : undefined
  const files = [...(path ? [`${path}.checkpoints.jsonl`] : []), ...(anchorFile ? [anchorFile] : [])]
  return {
    receiptStorage: {
      durable,
      ...(signer && { signer }),
      ...(spill && { spill }),
      sinks: files.map(fileSink),
      holder,
      isGone: writerIsGone,
      collector,
    },
    close: async () => spill?.close(),
  }
}

export function fileSink(file: string): LineSink {
  return {
    name: file,
    append: line => appendLine(file, Buffer.from(line.endsWith('\n') ? line : line + '\n')),
    tail: () => tailOf(file).catch(() => ''),
  }
}

/** All of it or nothing: the next line would go on from the part that a full disk has taken. */
async function appendLine(file: string, bytes: Buffer): Promise<void> {
  const handle = await open(file, 'a', 0o600)
  try {
    const { size } = await handle.stat()
    try {
      await handle.appendFile(bytes)
    } catch (error) {
      if ((await handle.stat()).size < size + bytes.length) await handle.truncate(size)
      throw error
    }
  } finally {
    await handle.close()
  }
}

/** Some two thousand checkpoints. */
const TAIL_BYTES = 1 << 20

async function tailOf(file: string): Promise<string> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const from = Math.max(0, size - TAIL_BYTES)
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(size - from), position: from })
    return buffer.subarray(0, bytesRead).toString()
  } finally {
    await handle.close()
  }
}

/** The file behind a store's address; undefined for a server and for memory. */
function localPath(address: string): string | undefined {
  if (address.startsWith('file:')) return address.slice('file:'.length).replace(/^\/\/(?=\/)/, '')
  return /^[a-z][a-z0-9+.-]+:|^:memory:/i.test(address) ? undefined : address
}
