import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expectWithin } from '../../../tests/crowding.ts'
import { collect } from '../byte-queue.ts'
import type { ExecRequest, Exit, Sandbox } from '../driver.ts'
import { listGroups } from '../oci/cgroups.ts'
import { capMemory, numberBytes, readNumber } from './module-memory.ts'
import { wasmDriver } from './wasm-driver.ts'

const LIMITS = { memoryMb: 16, cpus: 1, pids: 1, diskMb: 1 }
const driver = wasmDriver()
let sandbox: Sandbox
beforeAll(async () => {
  sandbox = await driver.start(LIMITS, 10_000)
})
afterAll(() => driver.close())

async function run(argv: [string, ...string[]], options: Partial<ExecRequest> = {}) {
  const exec = await sandbox.exec({ argv, deadlineMs: 5000, outputBytes: 10_000, ...options })
  const [stdout, stderr, exit] = await Promise.all([collect(exec.stdout), collect(exec.stderr), exec.exit])
  const decoder = new TextDecoder()
  return { stdout: decoder.decode(stdout), stderr: decoder.decode(stderr), exit }
}
const js = (code: string, options?: Partial<ExecRequest>) => run(['js', '-e', code], options)
const ok: Exit = { kind: 'code', code: 0 }
const limit = (name: string) => expect.objectContaining({ kind: 'limit', limit: name })

describe('scripts', () => {
  it('run, print, take arguments and input, and do what they left for later', async () => {
    const code = 'print(args, stdin); printError("aside"); Promise.resolve(7).then(value => print("later", value))'
    const stdin = new TextEncoder().encode('fed')
    expect(await run(['js', '-e', code, 'a', 'b'], { stdin })).toEqual({
      stdout: 'a,b fed\nlater 7\n',
      stderr: 'aside\n',
      exit: ok,
    })
  })

  it('share files with whoever drives the sandbox, and nothing between runs but files', async () => {
    await sandbox.writeFile('in/data.txt', new TextEncoder().encode('from outside'))
    expect((await js('globalThis.kept = 1; writeFile("out.txt", readFile("in/data.txt").toUpperCase())')).exit).toEqual(
      ok,
    )
    expect(new TextDecoder().decode(await sandbox.readFile('out.txt', 100))).toBe('FROM OUTSIDE')
    expect((await js('print(typeof kept, readFile("no"), listFiles())')).stdout).toBe(
      'undefined null in/data.txt,out.txt\n',
    )
    expect(await sandbox.listFiles('.')).toEqual([
      { name: 'in', kind: 'folder', bytes: 0 },
      { name: 'out.txt', kind: 'file', bytes: 12 },
    ])
    await sandbox.writeFile('main.js', new TextEncoder().encode('print("file", args)'))
    expect((await run(['js', 'main.js', 'x'])).stdout).toBe('file x\n')
  })

  it('keep every character of a text, NUL and halves of pairs too', async () => {
    await sandbox.writeFile('odd.txt', new TextEncoder().encode('a\0b'))
    expect((await js('print(readFile("odd.txt").length)')).stdout).toBe('3\n')
    await js('writeFile("odd.txt", "x\\0y\\ud800z")')
    expect(new TextDecoder().decode(await sandbox.readFile('odd.txt', 100))).toBe('x\0y\ufffdz')
  })

  it('see no host: no process, modules, network, timers or WebAssembly', async () => {
    const names = ['process', 'require', 'fetch', 'WebAssembly', 'setTimeout', 'Deno', 'navigator', 'Worker']
    const code = `print(${JSON.stringify(names)}.map(name => typeof globalThis[name]).join())`
    expect((await js(code)).stdout).toBe(`${names.map(() => 'undefined').join()}\n`)
    expect((await js('import("node:fs").then(() => print("got it"), error => print("refused"))')).stdout).not.toContain(
      'got it',
    )
    const reach = 'print(typeof Function("return this")().process, typeof print.constructor("return this")().process)'
    expect((await js(reach)).stdout).toBe('undefined undefined\n')
  })

  it('that throw are reported with what they threw', async () => {
    expect(await js('throw new TypeError("not so")')).toEqual({
      stdout: '',
      stderr: 'TypeError: not so\n',
      exit: { kind: 'code', code: 1 },
    })
    expect((await js('let x = ;')).stderr).toMatch(/^SyntaxError: /)
  })

  it.each<[string, string, Partial<ExecRequest>]>([
    ['time', 'for (;;);', { deadlineMs: 200 }],
    ['time', '/(a+)+$/.test("a".repeat(40) + "b")', { deadlineMs: 200 }],
    ['memory', 'new Array(1e7).fill(0).map(String)', {}],
    ['stack', 'function down() { down() } down()', {}],
    ['output', 'for (;;) print("more and more")', {}],
    ['disk', 'writeFile("big", "x".repeat(2000000))', {}],
  ])('are ended at the limit of %s, by name: %s', async (name, code, options) => {
    expect((await js(code, options)).exit).toEqual(limit(name))
    expect((await js('print("next")')).stdout).toBe('next\n')
  })

  it('that use up memory slowly end by one limit or the other, and files survive', async () => {
    await sandbox.writeFile('precious', new Uint8Array(5))
    const { exit } = await js('let all = []; for (;;) all.push("x".repeat(1e5) + all.length)', { deadlineMs: 1000 })
    expect(exit).toMatchObject({ kind: 'limit', limit: expect.stringMatching(/^(?:time|memory)$/) })
    expect((await js('print(readFile("precious").length)')).stdout).toBe('5\n')
  })

  it('are started in 5 ms once one has run', async () => {
    await js('1')
    const times: number[] = []
    for (let round = 0; round < 15; round++) {
      const from = performance.now()
      await js('1')
      times.push(performance.now() - from)
    }
    // The bound of the bench is 5; here it only has to be far from the 90 of a cold start, on a busy machine too.
    expectWithin(times.toSorted((a, b) => a - b)[7]!, 50)
  })

  it('are not found as anything else', async () => {
    for (const argv of [['sh', '-c', 'id'], ['node'], ['js'], ['js', 'absent.js'], ['wasi', 'absent.wasm']]) {
      const exec = sandbox.exec({ argv: argv as [string], deadlineMs: 1000, outputBytes: 10 })
      await expect(exec).rejects.toMatchObject({ code: 'exec_failed' })
    }
    await expect(sandbox.writeFile('../out', new Uint8Array())).rejects.toMatchObject({ code: 'file_failed' })
    await expect(sandbox.writeFile('big', new Uint8Array(2_000_000))).rejects.toMatchObject({ limit: 'disk' })
  })
})

/** A program compiled by rustc, whose first argument says what it does. */
describe('a WASI program of a compiler', () => {
  const agent = readFileSync(new URL('../../../tests/wasi-agent/agent.wasm', import.meta.url))
  const wasi = async (args: string[], options?: Partial<ExecRequest>) => {
    await sandbox.writeFile('agent.wasm', agent)
    return run(['wasi', 'agent.wasm', ...args], options)
  }
  const text = async (path: string) => new TextDecoder().decode(await sandbox.readFile(path, 100))

  it('has its arguments and its environment, and not the token of the step protocol', async () => {
    const env = { KEY: 'gr\u00fcn', WAYBILL_STEP_TOKEN: 'secret' }
    expect(await wasi(['print', '\u00e4'], { env })).toEqual({
      stdout: 'agent.wasm print \u00e4 gr\u00fcn\n',
      stderr: '',
      exit: ok,
    })
  })

  it('ends with its code, a panic as a trap', async () => {
    expect((await wasi(['exit'])).exit).toEqual({ kind: 'code', code: 9 })
    expect(await wasi(['panic'])).toMatchObject({
      exit: { kind: 'code', code: 134 },
      stderr: expect.stringContaining('not so'),
    })
  })

  it('reads, writes, moves, deletes and lists the files of its workspace', async () => {
    await sandbox.writeFile('gone.txt', new Uint8Array(1))
    await sandbox.writeFile('in/data.txt', new Uint8Array(1))
    const { stdout } = await wasi(['files'])
    expect(stdout.split(' ')[0]).toBe('one')
    expect(stdout).toMatch(/\bin\b.*\bmade\b/)
    expect(stdout).not.toContain('gone')
    expect(await text('made/two.txt')).toBe('one')
    await expect(text('gone.txt')).rejects.toThrow('no such file')
    expect((await js('print(readFile("made/two.txt"))')).stdout).toBe('one\n')
  })

  it('reaches nothing of the host', async () => {
    const { stdout, exit } = await wasi(['escape'])
    expect(exit).toEqual(ok)
    expect(stdout.match(/\btrue\b/g)).toBeNull()
    expect(stdout.match(/\bfalse\b/g)).toHaveLength(6)
  })

  it('sleeps without processor time, and appends without copying its file each time', async () => {
    const from = performance.now()
    expect((await wasi(['sleep', '200'])).exit).toEqual(ok)
    expect(performance.now() - from).toBeGreaterThan(195)
    const large = await driver.start({ ...LIMITS, diskMb: 8 }, 10_000)
    await large.writeFile('agent.wasm', agent)
    const exec = await large.exec({ argv: ['wasi', 'agent.wasm', 'append'], deadlineMs: 20_000, outputBytes: 100 })
    expect(new TextDecoder().decode(await collect(exec.stdout))).toBe('2000000\n')
    expect(await large.readFile('log.txt', 3_000_000)).toHaveLength(2_000_000)
    await large.stop()
  })

  it.each<[string, string[], Partial<ExecRequest>]>([
    ['time', ['spin'], { deadlineMs: 300 }],
    ['time', ['sleep', '60000'], { deadlineMs: 300 }],
    ['memory', ['memory'], {}],
    ['output', ['flood'], {}],
  ])('is ended at the limit of %s: %s', async (name, args, options) => {
    expect((await wasi(args, options)).exit).toEqual(limit(name))
    expect((await js('print("next")')).stdout).toBe('next\n')
  })

  it('gets an error when the workspace is full, and when nothing answers its calls', async () => {
    expect(await wasi(['disk'])).toMatchObject({
      exit: { kind: 'code', code: 3 },
      stderr: expect.stringMatching(/[Nn]o space/),
    })
    expect((await wasi(['work'])).stderr).toMatch(/503.*nothing answers calls here/s)
  })

  it('is refused as a component, with what to compile it for', async () => {
    await sandbox.writeFile('component.wasm', new Uint8Array([0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00]))
    await expect(run(['wasi', 'component.wasm'])).rejects.toThrow('wasm32-wasip1')
  })
})

/** A module by hand: types, imports of WASI, one memory, one function `_start`. */
function moduleOf({
  imports = [] as [name: string, type: number][],
  memory = [0, 1],
  body = [] as number[],
}): Uint8Array {
  const section = (id: number, ...bytes: number[]) => [id, ...numberBytes(bytes.length), ...bytes]
  const name = (text: string) => [text.length, ...new TextEncoder().encode(text)]
  const code = [0, ...body, 0x0b]
  return new Uint8Array([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    // Type 0: () -> (); 1: (i32) -> (); 2: nine values -> i32, as path_open.
    ...section(
      1,
      3,
      0x60,
      0,
      0,
      0x60,
      1,
      0x7f,
      0,
      0x60,
      9,
      0x7f,
      0x7f,
      0x7f,
      0x7f,
      0x7f,
      0x7e,
      0x7e,
      0x7f,
      0x7f,
      1,
      0x7f,
    ),
    ...section(
      2,
      imports.length,
      ...imports.flatMap(([what, type]) => [...name('wasi_snapshot_preview1'), ...name(what), 0, type]),
    ),
    ...section(3, 1, 0),
    ...section(5, 1, ...memory),
    ...section(7, 2, ...name('memory'), 2, 0, ...name('_start'), 0, imports.length),
    ...section(10, 1, ...numberBytes(code.length), ...code),
  ])
}

describe('WASI programs', () => {
  const run1 = async (module: Uint8Array, options?: Partial<ExecRequest>) => {
    await sandbox.writeFile('program.wasm', module)
    return run(['wasi', 'program.wasm'], options)
  }

  it('run and end with their code', async () => {
    expect((await run1(moduleOf({}))).exit).toEqual(ok)
    // i32.const 9, call proc_exit
    const exits = moduleOf({ imports: [['proc_exit', 1]], body: [0x41, 9, 0x10, 0] })
    expect((await run1(exits)).exit).toEqual({ kind: 'code', code: 9 })
  })

  it('that never end are ended', async () => {
    const endless = moduleOf({ body: [0x03, 0x40, 0x0c, 0, 0x0b] })
    expect((await run1(endless, { deadlineMs: 300 })).exit).toEqual(limit('time'))
  })

  it('cannot grow beyond the memory of the sandbox', async () => {
    // loop: grow by 16 pages, again while that worked; then trap.
    const grows = moduleOf({ body: [0x03, 0x40, 0x41, 16, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, 0x00] })
    expect((await run1(grows)).exit).toEqual(limit('memory'))
  })

  it('that trap are reported as such', async () => {
    expect(await run1(moduleOf({ body: [0x00] }))).toMatchObject({
      exit: { kind: 'code', code: 134 },
      stderr: expect.stringContaining('unreachable'),
    })
  })

  it('are refused when their memory cannot be capped', async () => {
    await expect(run1(new Uint8Array([1, 2, 3]))).rejects.toMatchObject({ code: 'exec_failed' })
    await expect(run1(moduleOf({ memory: [0, 0x80, 0x20] }))).rejects.toThrow('starts with 4096 pages')
    await expect(run1(moduleOf({ memory: [3, 1, 1] }))).rejects.toThrow('shared or 64-bit')
  })
})

describe('the cap of a memory', () => {
  it('holds for every module, and changes nothing else', () => {
    fc.assert(
      fc.property(fc.nat(500), fc.option(fc.nat(70_000)), fc.integer({ min: 1, max: 400 }), (min, max, cap) => {
        const memory = max === null ? [0, ...numberBytes(min)] : [1, ...numberBytes(min), ...numberBytes(max)]
        const module = moduleOf({ memory })
        if (min > cap) {
          expect(() => capMemory(module, cap)).toThrow('may have')
          return
        }
        const capped = capMemory(module, cap)
        const declared = Math.min(max ?? cap, cap)
        expect(capped).toEqual(moduleOf({ memory: [1, ...numberBytes(min), ...numberBytes(declared)] }))
      }),
    )
  })

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), tail => {
        try {
          capMemory(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...tail]), 16)
        } catch (error) {
          expect(error).toHaveProperty('name', 'ModuleRefusedError')
        }
      }),
    )
  })

  it('reads the numbers that it writes', () => {
    fc.assert(
      fc.property(fc.nat(0xffffffff), value => {
        const bytes = numberBytes(value)
        expect(readNumber(new Uint8Array(bytes), 0)).toEqual([value, bytes.length])
      }),
    )
  })
})

describe('the driver', () => {
  it('is found to work by running it, and leaves no control group', async () => {
    expect(await driver.probe(10_000)).toMatchObject({
      available: true,
      verifiedBy: expect.stringContaining('would not end'),
    })
    const own = await driver.start(LIMITS, 10_000)
    await own.stop()
    expect(await listGroups()).not.toContain(own.id)
  })

  it('says so to a script that runs when its sandbox is stopped', async () => {
    const own = await driver.start(LIMITS, 10_000)
    const exec = await own.exec({ argv: ['js', '-e', 'for (;;);'], deadlineMs: 60_000, outputBytes: 10 })
    await own.stop()
    expect(await exec.exit).toMatchObject({ kind: 'lost' })
  })
})
