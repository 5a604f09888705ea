import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'

const root = new URL('..', import.meta.url).pathname

async function pagesOf(folder: string): Promise<string[]> {
  return (await readdir(join(root, folder))).filter(name => name.endsWith('.md')).map(name => `${folder}/${name}`)
}

async function documents(): Promise<string[]> {
  const pages = (
    await Promise.all(['docs', 'docs/guides', 'docs/clients', 'docs/decisions', 'docs/spec'].map(pagesOf))
  ).flat()
  return [...pages, 'README.md', 'ARCHITECTURE.md', 'AGENTS.md']
}

it('every file that a document names is there', async () => {
  const missing: string[] = []
  for (const page of await documents()) {
    const text = await readFile(join(root, page), 'utf8')
    for (const [, path] of text.matchAll(
      /`((?:shared|router|runtime|node-agent|tests|scripts|docs|wrangler-local)\/[\w./-]+)`/g,
    )) {
      if (!existsSync(join(root, path!))) missing.push(`${page}: ${path}`)
    }
    for (const [, link] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)[^)]*\)/g)) {
      if (!existsSync(join(root, dirname(page), link!))) missing.push(`${page}: ${link}`)
    }
  }
  expect(missing).toEqual([])
})

/** What GitHub makes of a heading. */
const anchorOf = (heading: string) =>
  heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')

it('every heading that a link leads to is there', async () => {
  const anchors = new Map<string, Set<string>>()
  const pages = await documents()
  for (const page of pages) {
    const text = (await readFile(join(root, page), 'utf8')).replace(/^```[\s\S]*?^```/gm, '')
    anchors.set(page, new Set(Array.from(text.matchAll(/^#{1,6} (.*)$/gm), ([, heading]) => anchorOf(heading!.trim()))))
  }
  const missing: string[] = []
  let followed = 0
  for (const page of pages) {
    const text = await readFile(join(root, page), 'utf8')
    for (const [, path, anchor] of text.matchAll(/\]\((?!https?:)([^)#\s]*)#([^)]+)\)/g)) {
      const known = anchors.get(path === '' ? page : join(dirname(page), path!))
      if (known === undefined) continue
      followed++
      if (!known.has(anchor!)) missing.push(`${page}: ${path}#${anchor}`)
    }
  }
  expect(followed).toBeGreaterThan(50)
  expect(missing).toEqual([])
})

it('every section of a specification that a comment cites is there', async () => {
  const listed = String(execFileSync('git', ['ls-files', '*.ts'], { cwd: root })).split('\n')
  const sections = new Map<string, Set<string>>()
  for (const page of await pagesOf('docs/spec')) {
    const text = await readFile(join(root, page), 'utf8')
    sections.set(page, new Set(Array.from(text.matchAll(/^#{2,3} (\d+(?:\.\d+)*)\.? /gm), ([, number]) => number!)))
  }
  const wrong: string[] = []
  let cited = 0
  for (const path of listed.filter(path => path !== '' && existsSync(join(root, path)))) {
    const text = await readFile(join(root, path), 'utf8')
    for (const [, page, number] of text.matchAll(/\b(docs\/spec\/\w+\.md) §(\d+(?:\.\d+)*)/g)) {
      cited++
      if (!sections.get(page!)?.has(number!)) wrong.push(`${path}: ${page} §${number}`)
    }
  }
  expect(cited).toBeGreaterThan(100)
  expect(wrong).toEqual([])
})

it('every dependency has its reason', async () => {
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { dependencies: object }
  const text = await readFile(join(root, 'docs/security.md'), 'utf8')
  for (const name of Object.keys(dependencies)) expect(text, name).toContain(name)
})
