import { spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = new URL('..', import.meta.url).pathname

let folder: string
beforeAll(async () => {
  // Inside the project's cache, so that the packages are found from there.
  folder = await mkdtemp(join(root, 'node_modules/.cache-count-'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** Runs vitest over one file with the project's reporter; what it printed last, and its exit code. */
async function run(text: string, vars: Record<string, string> = {}) {
  await writeFile(join(folder, 'one.test.ts'), `import { afterAll, describe, expect, test } from 'vitest'\n${text}`)
  const reporter = JSON.stringify(join(root, 'tests/count-reporter.ts'))
  await writeFile(
    join(folder, 'vitest.config.ts'),
    `import { CountReporter } from ${reporter}\nexport default { root: ${JSON.stringify(folder)}, test: { reporters: ['default', new CountReporter()] } }\n`,
  )
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', join(folder, 'vitest.config.ts')],
    { encoding: 'utf8', cwd: folder, env: { ...process.env, NO_COLOR: '1', ...vars } },
  )
  return { last: stdout.trimEnd().split('\n').at(-1), status }
}

const ONE = `test('one', () => { expect(1).toBe(1) })\n`

test.each([
  ['a run that passes', ONE, '1 passed, 0 failed', 0],
  ['a failing test', `${ONE}test('two', () => { expect(1).toBe(2) })`, '1 passed, 1 failed', 1],
  ['a failing hook of a file', `${ONE}afterAll(() => { throw new Error('hook') })`, '1 passed, 1 failed', 1],
  [
    'a failing hook of a group',
    `describe('group', () => { ${ONE} afterAll(() => { throw new Error('hook') }) })`,
    '1 passed, 1 failed',
    1,
  ],
  ['a file that does not load', `throw new Error('load')`, '0 passed, 1 failed', 1],
  [
    'an error outside any test',
    `test('one', async () => { void Promise.reject(new Error('late')); await new Promise(done => setTimeout(done, 20)) })`,
    '1 passed, 1 failed',
    1,
  ],
])('the closing line counts %s', async (_, text, last, status) => {
  expect(await run(text)).toEqual({ last, status })
})

test.each([
  ['has passed', ONE, 'one.test.ts\n'],
  ['has a skipped test', `${ONE}test.skip('two', () => {})`, ''],
  ['has failed', `test('one', () => { expect(1).toBe(2) })`, ''],
  ['does more in a full run', `import { cases } from './cases.ts'\nvoid cases\n${ONE}`, ''],
])('a file that %s is listed as done only where nothing of it is left', async (_, text, listed) => {
  const slice = JSON.stringify(relative(folder, join(root, 'tests/slice.ts'))).replaceAll('"', "'")
  await writeFile(
    join(folder, 'cases.ts'),
    `import { slice } from ${slice}\nexport const cases = slice('cases', [1, 2], 1)\n`,
  )
  const list = join(folder, 'passed')
  await run(text, { WAYBILL_TEST_PASSED: list })
  expect(await readFile(list, 'utf8')).toBe(listed)
})
