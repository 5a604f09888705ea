import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const root = new URL('../../../', import.meta.url).pathname

/** What the peers are, each in a folder of its own; the gateway is compared with the pieces it was built with. */
const PINS = {
  restate: { dependencies: { '@restatedev/restate-server': '1.7.12', '@restatedev/restate-sdk': '1.17.2' } },
  dbos: { dependencies: { '@dbos-inc/dbos-sdk': '5.3.0' } },
  portkey: {
    dependencies: { '@portkey-ai/gateway': '1.15.2' },
    overrides: { '@hono/node-server': '1.13.5', hono: '4.9.7' },
  },
} as const

const WHEELS = { firstpass: 'firstpass==0.9.0', litellm: 'litellm[proxy]==1.106.12' } as const

export type Peer = keyof typeof PINS

/** The version that is compared with, for the name of its figures. */
export function peerVersion(peer: Peer): string {
  return Object.values(PINS[peer].dependencies)[0] ?? ''
}

export const wheelVersion = (peer: keyof typeof WHEELS): string => WHEELS[peer].split('==')[1]!

/** Installs a peer from PyPI into an environment of its own, once for each pin; gives the folder of its programs. */
export async function installWheel(peer: keyof typeof WHEELS): Promise<string> {
  const folder = join(root, 'node_modules/.cache/waybill/peers', peer)
  const mark = join(folder, 'installed.txt')
  if ((await readFile(mark, 'utf8').catch(() => '')) === WHEELS[peer]) return join(folder, 'bin')
  process.stderr.write(`installing ${peer} from PyPI …\n`)
  await promisify(execFile)('python3', ['-m', 'venv', '--clear', folder], { timeout: 60_000 })
  const args = ['install', '--quiet', '--disable-pip-version-check', WHEELS[peer]]
  await promisify(execFile)(join(folder, 'bin/pip'), args, { timeout: 600_000 })
  await writeFile(mark, WHEELS[peer])
  return join(folder, 'bin')
}

/** Installs a peer from npm beside the project's other caches, once for each set of pins; gives its folder. */
export async function installPeer(peer: Peer): Promise<string> {
  const folder = join(root, 'node_modules/.cache/waybill/peers', peer)
  await mkdir(folder, { recursive: true })
  const wanted = JSON.stringify({ name: `peer-${peer}`, private: true, ...PINS[peer] })
  const mark = join(folder, 'installed.json')
  if ((await readFile(mark, 'utf8').catch(() => '')) === wanted) return folder
  process.stderr.write(`installing ${peer} from npm …\n`)
  await writeFile(join(folder, 'package.json'), wanted)
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await promisify(execFile)('npm', args, { cwd: folder, timeout: 300_000 })
  await writeFile(mark, wanted)
  return folder
}
