import { describe, expect, it } from 'vitest'
import { emptyParts, violations } from './rules.ts'
import { parseSource } from './source.ts'

const check = (files: Record<string, string>) =>
  violations(Object.entries(files).map(([path, text]) => parseSource(path, text))).map(
    ({ rule, line }) => `${rule}:${line}`,
  )

type Planted = [name: string, files: Record<string, string>, caught: string]

/** One planted breach of each kind. */
const PLANTED: Planted[] = [
  ['wire imports a package', { 'shared/wire/run.ts': "import { Hono } from 'hono'" }, 'wire-only-zod:1'],
  ['wire imports its own part', { 'shared/wire/run.ts': "\nimport { x } from '../sql/db.ts'" }, 'wire-only-zod:2'],
  ['shared reaches out', { 'shared/sql/db.ts': "import { x } from '../../router/app.ts'" }, 'shared-inward:1'],
  ['runtime reaches router', { 'runtime/app.ts': "import type { X } from '../router/app.ts'" }, 'parts-apart:1'],
  ['router reaches runtime', { 'router/host/node.ts': "import { x } from '../../runtime/app.ts'" }, 'parts-apart:1'],
  ['node-agent reaches the API', { 'node-agent/main.ts': "import { x } from '../runtime/app.ts'" }, 'parts-apart:1'],
  ['product code reaches scripts', { 'router/app.ts': "import { x } from '../scripts/build.ts'" }, 'parts-apart:1'],
  [
    'node built-in in the core',
    { 'router/plan.ts': "import { readFile } from 'node:fs/promises'" },
    'host-only-package:1',
  ],
  ['dynamic import in the core', { 'router/plan.ts': "const fs = await import('node:fs')" }, 'host-only-package:1'],
  [
    're-export in the core',
    { 'router/plan.ts': "export const a = 1\nexport { b } from 'undici'" },
    'host-only-package:2',
  ],
  [
    'bare libSQL client',
    { 'shared/sql/db.ts': "import { createClient } from '@libsql/client'" },
    'host-only-package:1',
  ],
  [
    'bound drizzle driver',
    { 'runtime/store.ts': "import { drizzle } from 'drizzle-orm/libsql'" },
    'host-only-package:1',
  ],
  ['socket server', { 'router/app.ts': "import { serve } from '@hono/node-server'" }, 'host-only-package:1'],
  ['gRPC', { 'runtime/nodes/link.ts': "import { x } from '@connectrpc/connect'" }, 'host-only-package:1'],
  ['process', { 'router/app.ts': 'export const a = process.env.HOME' }, 'host-only-global:1'],
  ['Buffer as a type', { 'shared/sql/x.ts': 'export function f(a: Buffer): void { void a }' }, 'host-only-global:1'],
  ['route used elsewhere', { 'runtime/runs/store.ts': "import { r } from './route.ts'" }, 'route-by-app:1'],
  [
    'a test folder used by the product',
    { 'router/plan.ts': "import { x } from './testing/x.ts'" },
    'testing-for-tests:1',
  ],
  ['table used elsewhere', { 'runtime/runs/plan.ts': "import { t } from './table.ts'" }, 'table-by-store:1'],
  ['a folder without a name', { 'shared/utils/x.ts': 'export const a = 1' }, 'named-folder:1'],
  ['a file without a name', { 'router/helpers.ts': 'export const a = 1' }, 'named-folder:1'],
  [
    'a recursive mkdir',
    {
      'runtime/host/open.ts':
        "import { mkdir } from 'node:fs/promises'\nawait mkdir('a', { recursive: true, mode: 1 })",
    },
    'no-recursive-mkdir:2',
  ],
  [
    'JSON that the engine reads alone',
    { 'runtime/runs/x.ts': "export const a = JSON.parse('1')" },
    'no-bare-json-parse:1',
  ],
  [
    'a function of more than 120 lines',
    { 'runtime/runs/x.ts': `const a = 1\nexport function f() {\n${'  void a\n'.repeat(120)}}` },
    'no-long-function:2',
  ],
  [
    'a spread of members',
    { 'shared/a.ts': 'export const a = (b: number) => ({ ...{ b }, c: 1 })' },
    'no-literal-spread:1',
  ],
  ...[
    'c.req.text()',
    'c.req.parseBody()',
    'c.req.raw.arrayBuffer()',
    'request.clone().formData()',
    'context.request!.json()',
    'req?.bytes()',
    '(req as Request).blob()',
    "zValidator('form', schema)",
  ].map(
    (call): Planted => [
      `a body that is read without a limit, by ${call}`,
      { 'runtime/runs/x.ts': `\nexport const a = await ${call}` },
      'no-whole-body:2',
    ],
  ),
  [
    'a feature of the runtime reaches up',
    { 'runtime/runs/x.ts': "import type { N } from '../nodes/assemble.ts'" },
    'runtime-floors:1',
  ],
  ['a folder without a floor', { 'runtime/new/x.ts': "import { r } from '../runs/store.ts'" }, 'runtime-floors:1'],
  [
    "the node's side reaches the control plane's",
    { 'runtime/nodes/worker/worker.ts': "import { f } from '../runs/remote-run-store.ts'" },
    'worker-apart:1',
  ],
  ['a barrel', { 'shared/sign/all.ts': "export * from './jcs.ts'" }, 'no-barrel:1'],
  ['an index', { 'shared/sign/index.ts': 'export const a = 1' }, 'no-barrel:1'],
  [
    'a cycle',
    { 'router/a.ts': "import { b } from './b.ts'", 'router/b.ts': "import type { a } from './a.ts'" },
    'no-cycle:1',
  ],
]

describe('layer check', () => {
  it.each(PLANTED)('catches: %s', (_, files, caught) => {
    expect(check(files)).toContain(caught)
  })

  it('lets through what the layers allow', () => {
    expect(
      check({
        'shared/wire/run.ts': "import { z } from 'zod'\nimport { a } from './id.ts'",
        'shared/sql/db.ts': "import type { Client } from '@libsql/client/web'",
        'shared/host/open.ts': "import { createClient } from '@libsql/client'",
        'runtime/host/node.ts': "import { createRouter } from '../../router/router.ts'\nprocess.exit(0)",
        'runtime/runs/store.ts': "import { runs } from './table.ts'",
        'runtime/app.ts': "import { runsRoute } from './runs/route.ts'\nexport const x = { process: 1 }.process",
        'node-agent/main.ts': "import { engine } from '../runtime/execution/engine.ts'\nBuffer.from('')",
        'router/plan.test.ts': "import { readFile } from 'node:fs'\nawait request.text()",
        'shared/http/body-limit.ts': 'await request.arrayBuffer()',
        'shared/http/validate.ts': "zValidator('query', schema)\nc.json(await answer.json())\nrequest.headers.text()",
      }),
    ).toEqual([])
  })

  it('reports a part in which it read nothing, so that it cannot pass on an empty tree', () => {
    expect(emptyParts([parseSource('shared/a.ts', 'export const a = 1')])).toContain('router')
  })
})
