import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ICONS } from '../shared/browser/icons.ts'
import { TYPEFACE } from '../shared/browser/menu.ts'
import { typefaceFiles } from '../shared/browser/typeface.gen.ts'

const root = new URL('..', import.meta.url).pathname
const sheets = ['shared/browser', 'runtime/dashboard/browser/styles', 'router/panel/browser'].flatMap(folder =>
  readdirSync(root + folder)
    .filter(name => name.endsWith('.css'))
    .map(name => `${folder}/${name}`),
)
const textOf = (path: string) => readFileSync(root + path, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')

/** The declarations of a sheet that are for letters and room, with what they say. */
function sized(css: string): [property: string, value: string][] {
  const found = css.matchAll(
    /(?<=[{;]\s*)(font|font-size|(?:margin|padding)(?:-\w+)*|(?:row-|column-)?gap|border-radius)\s*:\s*([^;}]+)/g,
  )
  return [...found].map(([, property = '', value = '']) => [property, value.trim()])
}

/** A step of a scale, nothing, a hair's breadth, or a part of the window. */
const STEP =
  /^(?:var\(--(?:font|space|radius)-(?:\d+|less|code)\)|var\(--(?:round|letters|axis)\)|calc\((?:[-+*\d\s]|var\(--(?:space-\d+|axis)\))+\)|0|auto|none|inherit|solid|1px|\d+vh|1\.5|\/)$/

function outside(css: string): string[] {
  return sized(css).flatMap(([property, value]) => {
    const words = value.match(/calc\((?:[^()]|\([^()]*\))*\)|[^\s,]+/g) ?? []
    return words.every(word => STEP.test(word)) ? [] : [`${property}: ${value}`]
  })
}

describe('the scales of type and space', () => {
  it('are what every rule of every page uses', () => {
    expect(sheets.length).toBeGreaterThan(5)
    const found = sheets.flatMap(path => outside(textOf(path)).map(one => `${path} ${one}`))
    expect(found).toEqual([])
  })

  it('would not pass a size of its own', () => {
    expect(outside('a { font-size: 0.87rem; margin: var(--space-3) 7px; gap: 0 }')).toEqual([
      'font-size: 0.87rem',
      'margin: var(--space-3) 7px',
    ])
  })

  it('have steps that grow, and no step that nothing uses', () => {
    const all = sheets.map(textOf).join('\n')
    for (const scale of ['font', 'space']) {
      const steps = [...all.matchAll(new RegExp(`--${scale}-(\\d+):\\s*([\\d.]+)rem`, 'g'))]
      const sizes = steps.map(([, , size]) => Number(size))
      expect(sizes.length).toBeGreaterThan(5)
      expect(sizes).toEqual(sizes.toSorted((a, b) => a - b))
      expect(steps.filter(([, step]) => !all.includes(`var(--${scale}-${step})`)).map(([, step]) => step)).toEqual([])
    }
  })
})

describe('the typeface', () => {
  it('is the file that pages and style sheets name, with its licence beside it', () => {
    expect(Object.keys(typefaceFiles)).toEqual([TYPEFACE, 'geist-license.txt'])
    expect(textOf('shared/browser/base.css')).toContain(`url("${TYPEFACE}")`)
    expect(typefaceFiles['geist-license.txt']).toMatch(/SIL OPEN FONT LICENSE/i)
    const bytes = Buffer.from(typefaceFiles[TYPEFACE]!, 'base64')
    expect(bytes.subarray(0, 4).toString()).toBe('wOF2')
    expect(bytes.length).toBeLessThan(32_000)
  })
})

describe('icons', () => {
  it('are lines on their grid, each of them somewhere on a page', () => {
    const sources = ['runtime/dashboard', 'router/panel', 'shared/browser'].flatMap(folder =>
      readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
        .filter(name => /(?<!\.gen|\.test)\.ts$/.test(name) && name !== 'icons.ts')
        .map(name => readFileSync(`${root}${folder}/${name}`, 'utf8')),
    )
    const used = sources.join('\n')
    expect(
      Object.keys(ICONS).filter(name => !new RegExp(`icon(?:: |\\()'${name}'|^  [A-Z]\\w+: '${name}'`, 'm').test(used)),
    ).toEqual([])
    for (const [name, path] of Object.entries(ICONS)) {
      const far = (path.match(/\d+(?:\.\d+)?/g) ?? []).map(Number).filter(size => size > 20)
      expect(far, name).toEqual([])
    }
  })
})
