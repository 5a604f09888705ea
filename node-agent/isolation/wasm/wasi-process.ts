// The process in which one WASI program runs, without a single folder: node:wasi is no boundary for files.
import { WASI } from 'node:wasi'
import type { FromWasi, WasiJob } from './messages.ts'

const say = (message: FromWasi) =>
  new Promise<void>(resolve => process.send!(message, undefined, undefined, () => resolve()))

process.on('disconnect', () => process.exit(0))
process.once('message', async (job: WasiJob) => {
  const wasi = new WASI({ version: 'preview1', args: job.args, env: job.env, preopens: {}, returnOnExit: true })
  let memory: WebAssembly.Memory | undefined
  const pages = () => (memory?.buffer.byteLength ?? 0) / 65_536
  try {
    const module = await WebAssembly.compile(new Uint8Array(job.module))
    const instance = await WebAssembly.instantiate(module, wasi.getImportObject() as WebAssembly.Imports)
    if (instance.exports.memory instanceof WebAssembly.Memory) memory = instance.exports.memory
    await say({ type: 'end', code: wasi.start(instance) ?? 0, pages: pages() })
  } catch (error) {
    await say({ type: 'end', code: 1, pages: pages(), trap: error instanceof Error ? error.message : String(error) })
  }
  process.exit(0)
})
await say({ type: 'ready' })
