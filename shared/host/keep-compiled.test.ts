import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'

const run = promisify(execFile)
const SOURCE = 'shared/host/keep-compiled.ts'
const PUBLISHED = 'dist/shared/host/keep-compiled.js'
let folder: string
let text: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waybill-compiled-'))
  text = await readFile(new URL('keep-compiled.ts', import.meta.url), 'utf8')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs a program that has the module at this place, and gives the folder that it keeps compiled code in. */
async function ran(place: string, vars: Record<string, string> = {}): Promise<string> {
  const file = join(folder, place)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(join(dirname(file), 'package.json'), '{"type":"module"}')
  await writeFile(join(dirname(file), 'later.js'), 'export const later = 1')
  await writeFile(file, file.endsWith('.js') ? stripTypeScriptTypes(text) : text)
  const program = `import { getCompileCacheDir } from 'node:module'
    import { keepCompiled } from ${JSON.stringify(file)}
    keepCompiled()
    await import(${JSON.stringify(join(dirname(file), 'later.js'))})
    console.log(getCompileCacheDir())`
  const env = { PATH: process.env.PATH, ...vars }
  return (await run(process.execPath, ['--input-type=module', '--eval', program], { env })).stdout
}

it('keeps compiled code in the node_modules that the package is installed in', async () => {
  const cache = join(folder, 'app/node_modules/.cache/waybill/compiled')
  expect(await ran(`app/node_modules/waybill/${PUBLISHED}`)).toContain(cache)
  const kept = await readdir(cache, { recursive: true, withFileTypes: true })
  expect(kept.filter(one => one.isFile())).not.toEqual([])
})

it('keeps it in its own node_modules where it runs from a clone', async () => {
  const cache = join(folder, 'clone/node_modules/.cache/waybill/compiled')
  expect(await ran(`clone/${SOURCE}`)).toContain(cache)
  expect(await ran(`clone/${PUBLISHED}`)).toContain(cache)
})

it('leaves it to an operator who says where, or not at all', async () => {
  const elsewhere = join(folder, 'elsewhere')
  expect(await ran(`said/${SOURCE}`, { NODE_COMPILE_CACHE: elsewhere })).toContain(elsewhere)
  expect(await ran(`off/${SOURCE}`, { NODE_DISABLE_COMPILE_CACHE: '1' })).toBe('undefined\n')
  expect(await readdir(join(folder, 'off'))).toEqual(['shared'])
})

it('goes on without it where there can be no such folder', async () => {
  await mkdir(join(folder, 'closed'))
  // A file in its way also stops an account that may write everywhere.
  await writeFile(join(folder, 'closed/node_modules'), '')
  expect(await ran(`closed/${SOURCE}`)).toBe('undefined\n')
})
