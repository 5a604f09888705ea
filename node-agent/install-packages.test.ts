import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { engineFixture } from '../runtime/execution/testing/engine-fixture.ts'
import { readAllowEntry } from '../shared/http/outbound/allow-list.ts'
import { outboundRule } from '../shared/http/outbound/outbound-rule.ts'
import { silentLog } from '../shared/log/log.ts'
import { requireBackend } from '../tests/backends/require.ts'
import { nodeEnv } from './env.ts'
import { hasGuestInputs, hasInterpreters, testImageFolder } from './isolation/testing/test-image.ts'
import { nodeSandboxes } from './sandboxes.ts'

const isRoot = process.getuid?.() === 0
const has = (binary: string) => isRoot && spawnSync(binary, ['--version']).status === 0
const here =
  hasGuestInputs() &&
  hasInterpreters() &&
  requireBackend('qemu-system-x86_64', has('qemu-system-x86_64'), 'apt-get install qemu-system-x86')

/** An archive of stored files, which is what a wheel is. */
function zipOf(files: Record<string, string>): Buffer {
  const bodies: Buffer[] = []
  const entries: Buffer[] = []
  let at = 0
  for (const [name, text] of Object.entries(files)) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)]
    const about = Buffer.alloc(26)
    about.writeUInt16LE(20, 0)
    about.writeUInt32LE(0x00210000, 6)
    about.writeUInt32LE(crc32(content), 10)
    about.writeUInt32LE(content.length, 14)
    about.writeUInt32LE(content.length, 18)
    about.writeUInt16LE(path.length, 22)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(at, 10)
    bodies.push(Buffer.from('PK\x03\x04'), about, path, content)
    entries.push(Buffer.from('PK\x01\x02\x14\x00'), about, place, path)
    at += 30 + path.length + content.length
  }
  const directory = Buffer.concat(entries)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  const count = Object.keys(files).length
  end.writeUInt16LE(count, 8)
  end.writeUInt16LE(count, 10)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...bodies, directory, end])
}

const INFO = 'greeter-1.0.dist-info'
const WHEEL = 'greeter-1.0-py3-none-any.whl'
const wheel = zipOf({
  'greeter.py': 'def greet():\n    return "hello from a package"\n',
  [`${INFO}/METADATA`]: 'Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n',
  [`${INFO}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
  [`${INFO}/RECORD`]: `greeter.py,,\n${INFO}/METADATA,,\n${INFO}/WHEEL,,\n${INFO}/RECORD,,\n`,
})

/** A package as npm packs it; what its script leaves behind would show that it was run. */
const greeting = gzipSync(
  tarOf({
    'package/package.json': JSON.stringify({
      name: 'greeting',
      version: '2.1.0',
      main: 'index.js',
      scripts: { install: 'touch /work/script-was-run' },
    }),
    'package/index.js': 'module.exports = () => "hello from npm"\n',
  }),
)

const integrity = `sha512-${createHash('sha512').update(greeting).digest('base64')}`

/** Names, sizes, and sums of headers, as ustar has them. */
function tarOf(files: Record<string, string>): Buffer {
  const parts = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text)
    const header = Buffer.alloc(512)
    header.write(name, 0, 'latin1')
    header.write('0000644\0' + '0000000\0'.repeat(2), 100, 'latin1')
    header.write(`${content.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0        0`, 124, 'latin1')
    header.write('ustar\x0000', 257, 'latin1')
    const sum = header.reduce((total, byte) => total + byte, 0)
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]
  })
  return Buffer.concat([...parts, Buffer.alloc(1024)])
}

describe.runIf(here)('install_packages', () => {
  let folder: string
  let registry: Server
  let port: number
  let sandboxes: ReturnType<typeof nodeSandboxes>
  const asked: string[] = []

  beforeAll(async () => {
    registry = createServer((request, response) => {
      asked.push(request.url!)
      if (request.url === '/simple/greeter/') {
        response.writeHead(200, { 'content-type': 'text/html' }).end(`<a href="/files/${WHEEL}">${WHEEL}</a>`)
      } else if (request.url === `/files/${WHEEL}`) response.end(wheel)
      else if (request.url === '/greeting') {
        const dist = { tarball: `http://registry.example:${port}/greeting.tgz`, integrity }
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(
          JSON.stringify({
            name: 'greeting',
            'dist-tags': { latest: '2.1.0' },
            versions: { '2.1.0': { name: 'greeting', version: '2.1.0', hasInstallScript: true, dist } },
          }),
        )
      } else if (request.url === '/greeting.tgz') response.end(greeting)
      else response.writeHead(404).end()
    })
    await new Promise<void>(done => registry.listen(0, '127.0.0.1', done))
    port = (registry.address() as AddressInfo).port
    folder = await mkdtemp(join(tmpdir(), 'waybill-pip-'))
    await chmod(folder, 0o711)
    const env = nodeEnv.parse({
      NODE_AGENT_STATE_DIR: folder,
      NODE_AGENT_IMAGE_DIR: await testImageFolder({ interpreters: true }),
      NODE_AGENT_QEMU_ACCEL: 'tcg',
      NODE_AGENT_PIP_INDEX: `http://registry.example:${port}/simple`,
      NODE_AGENT_NPM_REGISTRY: `http://registry.example:${port}/`,
    })
    sandboxes = nodeSandboxes({
      env,
      workspaces: join(folder, 'workspaces'),
      log: silentLog(),
      rule: outboundRule([readAllowEntry(`127.0.0.1:${port}`)!]),
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
  })
  afterAll(async () => {
    registry.close()
    await sandboxes?.close()
    await rm(folder, { recursive: true, force: true })
  })

  async function ran(lines: string[]) {
    const decisions: string[] = []
    const made = await engineFixture({
      manifest: {
        isolation: 'microvm',
        tools: ['install_packages', 'python', 'node'],
        limits: { memoryMb: 384, diskMb: 64 },
        egress: [{ host: 'registry.example', ports: [port] }],
      },
      sandboxes,
      async egressDecided(_run, { allowed, host, port }) {
        decisions.push(`${allowed} ${host}:${port}`)
      },
    })
    await made.engine.start()
    const id = await made.create({ prompt: lines.join('\n') })
    made.engine.wake()
    await made.until(id, undefined, 400_000)
    const events = await made.runs.events(id, 1, 1000)
    await made.close()
    const outputs = events.flatMap(({ kind, payload }) => (kind === 'step_completed' ? [payload.output] : []))
    const failures = events.flatMap(({ kind, payload }) => (kind === 'step_failed' ? [payload.error] : []))
    return {
      outputs: outputs.filter(one => typeof one === 'object' && one !== null && !('toolCalls' in one)),
      failures,
      decisions,
    }
  }

  it('takes packages from the registry that the egress rules name, and from no other', async () => {
    const install = '/call install_packages {"manager":"pip","packages":["greeter==1.0"]}'
    const { outputs, failures, decisions } = await ran([
      install,
      '/call python {"code":"import greeter; print(greeter.greet())"}',
      `/call python {"code":"import urllib.request as u; u.urlopen('http://another.example:${port}/')"}`,
      '/call install_packages {"manager":"npm","packages":["greeting@^2.0.0"]}',
      `/call node {"code":"console.log(require('greeting')(), require('fs').readdirSync('.').join())"}`,
      '/call install_packages {"manager":"apt","packages":["cowsay"]}',
      '/call install_packages {"manager":"npm","packages":["greeter==1.0"]}',
      '/call install_packages {"manager":"pip","packages":["--index-url=http://evil.example"]}',
    ])
    expect(outputs).toMatchObject([
      { exitCode: 0 },
      { stdout: 'hello from a package\n', exitCode: 0 },
      { exitCode: 1, stderr: expect.stringContaining('403') },
      { exitCode: 0 },
      { stdout: 'hello from npm .python,node_modules,package-lock.json,package.json\n', exitCode: 0 },
    ])
    expect(failures).toEqual([
      expect.stringContaining('apt is not offered'),
      expect.stringContaining('greeter==1.0 is no package of npm'),
    ])
    expect([...new Set(decisions)]).toEqual([`true registry.example:${port}`, `false another.example:${port}`])
    expect(asked).toEqual(['/simple/greeter/', `/files/${WHEEL}`, '/greeting', '/greeting.tgz'])
  }, 420_000)
})
