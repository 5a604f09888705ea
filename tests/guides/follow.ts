import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from '../../scripts/bench/free-port.ts'
import { programEnv } from '../program-env.ts'
import { type Block, blocksOf } from './blocks.ts'
import { firstDifference, printedPattern } from './printed.ts'
import { openTerminal } from './terminal.ts'

const root = new URL('../..', import.meta.url).pathname

/** The ports that the documents speak of; each guide has others in their place, so that they are followed beside each other. */
const PORTS = [8080, 8081, 8090, 8091, 9000, 9001]

/** Ample: a block takes a second or two, and more where everything else runs at the same time. */
const WITHIN_MS = 30_000

/** Does what documents say, one after the other in one terminal; throws at the first block that fails or prints something else. */
export async function follow(
  documents: string[],
  more: Record<string, string> = {},
  { withinMs = WITHIN_MS } = {},
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'waybill-guide-'))
  const swap = await otherPorts()
  const env = {
    ...programEnv,
    HOME: folder,
    TMPDIR: folder,
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    PLATFORM_BIND: swap('localhost:8080'),
    npm_config_update_notifier: 'false',
    // Set, it is listened on from the start, and the log says so; only a guide that speaks of it needs it.
    ...(documents.some(text => text.includes(':8081')) && { PLATFORM_TUNNEL_BIND: swap('localhost:8081') }),
    ROUTER_BIND: swap('127.0.0.1:8090'),
    NODE_AGENT_IMAGE_DIR: join(folder, 'no-image'),
    NODE_AGENT_STATE_DIR: join(folder, 'node'),
    ...more,
  }
  const terminal = await openTerminal({ folder: join(folder, 'blocks'), cwd: root, env })
  try {
    for (const document of documents) {
      const blocks = blocksOf(document)
      for (const [index, block] of blocks.entries()) {
        if (block.use.kind === 'file') await put(block.use.name, swap(block.text))
        const next = blocks[index + 1]
        if (block.use.kind === 'run') await run(block, next?.use.kind === 'prints' ? swap(next.text) : undefined)
      }
    }
  } finally {
    await terminal.close()
    await rm(folder, { recursive: true, force: true })
  }

  async function run({ line, text }: Block, expected: string | undefined): Promise<void> {
    const pattern = expected === undefined ? undefined : printedPattern(expected)
    // What is left running in the background prints when it is ready, and the guide goes on from there.
    const until = /(?<!&)&$/m.test(text) ? pattern : undefined
    const { printed, end } = await terminal.run(swap(text), { until, withinMs })
    if (end === 'done' && (pattern === undefined || pattern.test(printed))) return
    const lines = [`line ${line}: ${end === 'done' ? 'something else was printed than is written' : end}`, text]
    if (expected !== undefined) lines.push(`--- expected here: ${firstDifference(expected, printed)}`)
    throw new Error([...lines, '--- printed', printed, terminal.stray(), await logs()].join('\n'))
  }

  async function put(name: string, text: string): Promise<void> {
    const path = join(await where(), name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, `${text}\n`)
  }

  async function where(): Promise<string> {
    return (await terminal.run('pwd', { withinMs })).printed.trim()
  }

  /** What services logged, for the person who mends the guide. */
  async function logs(): Promise<string> {
    const files = await readdir(folder, { recursive: true })
    const found = files.filter(file => file.endsWith('.log') && !/node_modules|_logs/.test(file))
    const texts = found.map(async file => `--- ${file}\n${(await readFile(join(folder, file), 'utf8')).slice(-2000)}`)
    return (await Promise.all(texts)).join('\n')
  }
}

async function otherPorts(): Promise<(text: string) => string> {
  const other = new Map<string, string>()
  for (const port of PORTS) other.set(String(port), String(await freePort()))
  const any = new RegExp(`(?<![\\d.])(?:${PORTS.join('|')})(?!\\d)`, 'g')
  return text => text.replace(any, port => other.get(port) ?? port)
}
