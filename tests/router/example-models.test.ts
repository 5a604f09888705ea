import { readdir, readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'

const root = new URL('../../', import.meta.url)

/** Every `provider/model` of a vendor that the bundled price table knows, and every name in the vendors' own spelling; no path of an address. */
const NAMES =
  /(?<!\/)\b(?:(anthropic|openai)\/(?!v1\b)([a-z][\w.-]*\d[\w.-]*)|(claude-(?:haiku|sonnet|opus)-[\w.-]*\d)|(gpt-\d[\w.-]*))\b/g

it('the README, the guides and the examples name models that have a price and no end of life', async () => {
  const folders = ['docs/', 'docs/guides/', 'docs/examples/', 'docs/deploy/']
  const files = ['README.md']
  for (const folder of folders) {
    for (const one of await readdir(new URL(folder, root), { withFileTypes: true })) {
      const isText = one.isFile() && /\.(?:md|ts|ya?ml|toml)$/.test(one.name)
      if (isText && one.name !== 'benchmarks.md') files.push(folder + one.name)
    }
  }
  // What the vendor's own client warns of, as it is installed here.
  const sdk = await readFile(new URL('node_modules/@anthropic-ai/sdk/internal/data/deprecated-models.js', root), 'utf8')
  const ending = /DEPRECATED_MODELS = \{([^}]*)\}/.exec(sdk)?.[1] ?? ''
  expect(ending).toContain('claude-')
  const prices = await loadBuiltinPrices()
  const wrong: string[] = []
  let seen = 0
  for (const file of files) {
    const text = await readFile(new URL(file, root), 'utf8')
    for (const [, provider, model, claude, gpt] of text.matchAll(NAMES)) {
      seen += 1
      const name = model ?? claude ?? gpt ?? ''
      const vendor = provider ?? (claude === undefined ? 'openai' : 'anthropic')
      if (!prices.find(vendor, name, vendor === 'openai' ? 'chat' : 'messages'))
        wrong.push(`${file}: ${name} has no price`)
      if (ending.includes(`'${name}'`)) wrong.push(`${file}: ${name} comes to its end`)
    }
  }
  expect(seen).toBeGreaterThan(1)
  expect(wrong).toEqual([])
})
