import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/** `npm run build`: the published form, JavaScript and declarations, under dist/. */
const root = new URL('..', import.meta.url).pathname
rmSync(`${root}dist`, { recursive: true, force: true })
execFileSync(`${root}node_modules/.bin/tsc`, ['-p', 'scripts/tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
// The guest's agent is compiled where the image is built.
for (const name of ['agent.c', 'clients/waybill.js', 'clients/waybill.py']) {
  mkdirSync(dirname(`${root}dist/node-agent/guest/${name}`), { recursive: true })
  copyFileSync(`${root}node-agent/guest/${name}`, `${root}dist/node-agent/guest/${name}`)
}
const { bin } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { bin: Record<string, string> }
for (const path of Object.values(bin)) chmodSync(root + path, 0o755)
