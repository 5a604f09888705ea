import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hasGuestInputs, hasInterpreters, testImageFolder } from '../node-agent/isolation/testing/test-image.ts'
import { requireBackend } from './backends/require.ts'
import { blocksOf } from './guides/blocks.ts'
import { follow } from './guides/follow.ts'
import { slice } from './slice.ts'

const at = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const pagesOf = (folder: string) =>
  readdirSync(new URL(`../docs/${folder}`, import.meta.url)).filter(name => name !== 'README.md')
const guides = pagesOf('guides')
const clients = pagesOf('clients')
/** Of clients that are among the development dependencies; `npm run agents` and `npm run clients` try the others. */
const followed = clients.filter(name => blocksOf(at(`docs/clients/${name}`)).some(({ use }) => use.kind === 'run'))

/** The part of a document under one heading. */
function section(document: string, title: string): string {
  const from = document.indexOf(`\n## ${title}\n`)
  if (from === -1) throw new Error(`there is no heading "${title}"`)
  const to = document.indexOf('\n## ', from + 1)
  return document.slice(from, to === -1 ? undefined : to)
}

const index = at('docs/guides/README.md')
const begin = section(index, 'How to begin')
const service = section(index, 'A service')

const runs = (binary: string) => spawnSync(binary, ['--version']).status === 0
const hasRunc = () => process.getuid?.() === 0 && runs('runc')
const sandboxes =
  hasGuestInputs() && hasInterpreters() && requireBackend('runc', hasRunc(), 'apt-get install runc, and run as root')

const tools = requireBackend('jq', runs('jq'), 'apt-get install jq')

// Types are stripped once for all the processes of all guides.
const cache: Record<string, string> = { NODE_COMPILE_CACHE: join(tmpdir(), 'waybill-guides-compiled') }

describe.runIf(tools).concurrent('a reader who does what is written gets what is written', () => {
  it.for(slice('guides', guides, 3))('in %s', { timeout: 59_000 }, async (name, { skip }) => {
    const guide = at(`docs/guides/${name}`)
    const isolated = name === 'code-agents.md'
    skip(isolated && !sandboxes, 'it needs a sandbox')
    const before = [begin, ...(guide.includes('(README.md#a-service)') ? [service] : [])]
    await follow([...before, guide], {
      ...cache,
      ...(isolated && { NODE_AGENT_IMAGE_DIR: await testImageFolder({ interpreters: true }) }),
    })
  })

  it.for(slice('clients', followed, 1))('in the page of a client, %s', { timeout: 59_000 }, async name => {
    await follow(
      [begin, section(at('docs/clients/README.md'), 'Two routers to try'), at(`docs/clients/${name}`)],
      cache,
    )
  })

  it('in the README', async () => {
    const clone = ['package.json', 'node_modules', 'docs', 'router', 'runtime', 'shared']
    await follow([inAClone(clone), at('README.md')], cache)
  }, 59_000)
})

/** A folder that is the clone but for its data: what the README says is done there leaves nothing behind. */
const inAClone = (parts: string[]) =>
  ['```sh', 'clone="$PWD" && cd "$(mktemp -d)"', ...parts.map(part => `ln -s "$clone/${part}"`), '```'].join('\n')

/** The blocks that are not run, each with its reason beside it in the source. A new one has to be added here by hand. */
const SHOWN: Record<string, number> = {
  'README.md': 1,
  'docs/guides/code-agents.md': 2,
  'docs/clients/aider.md': 1,
  'docs/clients/claude-code.md': 1,
  'docs/clients/codex.md': 1,
  'docs/clients/continue.md': 1,
  'docs/clients/copilot.md': 1,
  'docs/clients/go-java-and-rust.md': 1,
  'docs/clients/opencode.md': 2,
  'docs/clients/vercel-ai-sdk.md': 2,
}

describe('a block of the documents', () => {
  it('is run, compared or written to a file, but for a few that say why not', () => {
    const shown: Record<string, number> = {}
    const named = [...guides.map(name => `guides/${name}`), ...clients.map(name => `clients/${name}`)]
    const indexes = ['README.md', 'docs/guides/README.md', 'docs/clients/README.md']
    for (const page of [...indexes, ...named.map(name => `docs/${name}`)]) {
      const count = blocksOf(at(page)).filter(({ use }) => use.kind === 'shown').length
      if (count > 0) shown[page] = count
    }
    expect(shown).toEqual(SHOWN)
  })

  it('that is none of these is refused by its line', () => {
    expect(() => blocksOf('text\n\n```ts\nlet a = 1\n```\n')).toThrow(
      'line 3: a block "ts" is neither run nor compared',
    )
    expect(() => blocksOf('```text\nprinted by whom?\n```\n')).toThrow('line 1')
    expect(() => blocksOf('```sh\ntrue\n')).toThrow('line 1: this block has no end')
  })
})

describe('a document that is not true', () => {
  const sh = (script: string, printed?: string) =>
    `# A guide\n\n\`\`\`sh\n${script}\n\`\`\`\n${printed === undefined ? '' : `\n\`\`\`text\n${printed}\n\`\`\`\n`}`

  it.each([
    ['a command fails', sh('echo before\nfalse\necho after'), /line 3: a command of it failed.*ended with 1.*before/s],
    ['a command before a pipe fails', sh('false | cat'), /a command of it failed/],
    ['something else is printed', sh('echo one; echo two', 'one\nthree'), /expected here: three.*printed\none\ntwo/s],
    ['more is printed', sh('echo one; echo two', 'one'), /something else was printed.*more was printed/s],
    ['less is printed', sh('echo one', 'one\ntwo'), /expected here: two/],
    ['a service ends before it is ready', sh('(echo oops; exit 1) &', 'ready'), /expected here: ready.*oops/s],
  ])('fails where %s', async (_, document, says) => {
    await expect(follow([document], {}, { withinMs: 2000 })).rejects.toThrow(says)
  })

  it('passes where it is true: variables, files and services last from block to block', async () => {
    const file = '```txt file=sub/words.txt\nfirst\nsecond 8080\n```\n'
    const blocks = [
      sh('cd "$(mktemp -d)"; A=7'),
      file,
      sh('cat sub/words.txt; echo $A', 'first\nsecond 8080\n7'),
      sh('(echo ready; cat < <(sleep 60); echo never) &', 'ready'),
      sh('echo one; echo two-three; echo four', 'one\ntwo-…\n…'),
    ]
    await follow([blocks.join('\n')])
  })
})
