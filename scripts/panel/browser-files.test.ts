import { describe, expect, it } from 'vitest'
import { panelFiles } from '../../router/panel/files.gen.ts'
import { dashboardFiles } from '../../runtime/dashboard/files.gen.ts'
import { verifierFiles } from '../../runtime/receipts/verifier.gen.ts'
import { BROWSER_PARTS, browserFiles } from './browser-files.ts'

const served: Record<keyof typeof BROWSER_PARTS, Readonly<Record<string, string>>> = {
  'router/panel/files.gen.ts': panelFiles,
  'runtime/dashboard/files.gen.ts': dashboardFiles,
  'runtime/receipts/verifier.gen.ts': verifierFiles,
}

describe.each(Object.keys(BROWSER_PARTS) as (keyof typeof BROWSER_PARTS)[])('%s', path => {
  const files = served[path]

  it('is what its browser/ folder says; else run `npm run generate`', () => {
    expect(files).toEqual(browserFiles(BROWSER_PARTS[path]))
  })

  it('holds no package, no type and no source that the entries do not reach', () => {
    expect(Object.keys(files).length).toBeGreaterThan(1)
    for (const [name, text] of Object.entries(files)) {
      if (!name.endsWith('.js')) continue
      const imported = [...text.matchAll(/from '([^']+)'/g)].map(([, from]) => from!.slice(2))
      for (const file of imported) expect(Object.keys(files), name).toContain(file)
      expect(text, name).not.toMatch(/import type|\binterface |innerHTML|document\.write|\beval\(/)
    }
  })
})
