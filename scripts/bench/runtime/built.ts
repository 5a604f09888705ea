import { execFileSync } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'

const root = new URL('../../../', import.meta.url).pathname
/** What the published form is made of. */
const SOURCES = ['shared', 'router', 'runtime', 'node-agent', 'wrangler-local', 'scripts/tsconfig.build.json']
const MADE = 'dist/node-agent/main.js'

let build: Promise<void> | undefined

/** The published form as the sources are now; a build takes longer than many a bench, so one that is still true is left. */
export function built(): Promise<void> {
  build ??= (async () => {
    const made = await stat(join(root, MADE)).catch(() => undefined)
    if (made !== undefined && (await newest(SOURCES)) < made.mtimeMs) return
    execFileSync(process.execPath, [`${root}scripts/build.ts`])
  })()
  return build
}

async function newest(names: readonly string[]): Promise<number> {
  const times = names.map(async name => {
    const path = join(root, name)
    const { mtimeMs } = await stat(path)
    const inside = await readdir(path, { recursive: true }).catch(() => [])
    const files = inside.map(async one => (await stat(join(path, one))).mtimeMs)
    return Math.max(mtimeMs, ...(await Promise.all(files)))
  })
  return Math.max(...(await Promise.all(times)))
}
