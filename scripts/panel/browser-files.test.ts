import { expect, it } from 'vitest'
import { panelFiles } from '../../router/panel/files.gen.ts'
import { browserFiles } from './browser-files.ts'

it('what the router serves as its panel is what router/panel/browser/ says; else run `npx node scripts/panel.ts`', () => {
  expect(panelFiles).toEqual(browserFiles())
})

it('serves no package, no type and no source that the entry does not reach', () => {
  expect(Object.keys(panelFiles)).toEqual(expect.arrayContaining(['panel.js', 'jcs.js', 'panel.css', 'icon.svg']))
  for (const [name, text] of Object.entries(panelFiles)) {
    if (!name.endsWith('.js')) continue
    const imported = [...text.matchAll(/from '([^']+)'/g)].map(([, from]) => from!.slice(2))
    for (const file of imported) expect(Object.keys(panelFiles), name).toContain(file)
    expect(text, name).not.toMatch(/import type|\binterface |innerHTML|document\.write|\beval\(/)
  }
})
