import { describe, expectTypeOf, it } from 'vitest'
import type { z } from 'zod'
import type { runtime } from './runtime/endpoints.ts'
import type { Run, RunCreate } from './runtime/run.ts'

type RunsCreate = typeof runtime.runs.create

describe('endpoint', () => {
  it('keeps enough of its type for a client to infer arguments and answers', () => {
    expectTypeOf<RunsCreate['method']>().toEqualTypeOf<'POST'>()
    expectTypeOf<RunsCreate['path']>().toEqualTypeOf<'/v1/runs'>()
    expectTypeOf<z.input<RunsCreate['body']>>().toEqualTypeOf<RunCreate>()
    expectTypeOf<z.output<RunsCreate['responses'][201]['schema']>>().toEqualTypeOf<Run>()
    expectTypeOf<RunCreate>().toExtend<{ agentName: string; input?: Record<string, unknown> }>()
  })
})
