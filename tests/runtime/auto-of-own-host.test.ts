import { afterEach, expect, it } from 'vitest'
import { chatAnswer } from '../upstream/answers.ts'
import { answer } from '../upstream/scripted.ts'
import { type ProviderFixture, providerFixture } from './provider-fixture.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

/** A tenant whose one provider is a host of its own, with these models. */
async function fixture(
  models: readonly string[] | undefined,
  provider = 'openai-compatible',
): Promise<ProviderFixture> {
  const made = await providerFixture()
  open.push(made)
  await made.configure(provider)
  const list = JSON.stringify({ object: 'list', data: models?.map(id => ({ id, object: 'model' })) })
  made.remote.always((response, seen, request) => {
    const isList = seen.url === '/v1/models'
    const remote = isList ? answer(models ? 200 : 404, list) : answer(200, JSON.stringify(chatAnswer('Hi.', 'llama')))
    return remote(response, seen, request)
  })
  return made
}

const asked = ({ remote }: ProviderFixture) =>
  remote.seen
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => (JSON.parse(body.toString()) as { model: string }).model)

it.each(['openai-compatible', 'openai-compatible:lab'])('auto is the one model that %s lists', async provider => {
  const here = await fixture(['llama'], provider)
  expect((await here.ran('auto')).run).toMatchObject({ status: 'succeeded', model: `${provider}/llama` })
  expect(asked(here)).toEqual(['llama'])
})

it('auto is the one model of it that the settings name, whatever it lists', async () => {
  const here = await fixture(['llama', 'qwen'])
  const windows = { 'openai-compatible/qwen': 8192 }
  await here.json(200, 'PUT', '/v1/settings/models', { windows })
  expect((await here.ran('auto')).run.status).toBe('succeeded')
  expect(asked(here)).toEqual(['qwen'])
})

it.each<[string, readonly string[] | undefined]>([
  ['several models', ['llama', 'qwen']],
  ['no models', []],
  ['no list', undefined],
])('auto says how a model is chosen where the host has %s', async (_, models) => {
  const here = await fixture(models)
  const { run } = await here.ran('auto')
  expect(run).toMatchObject({ status: 'failed', error: { code: 'model_unconfigured' } })
  expect(run.error?.message).toContain('PUT /v1/settings/models')
  expect(asked(here)).toEqual([])
})

it('a list of candidates that the tenant wrote is not added to', async () => {
  const here = await fixture(['llama'])
  await here.json(200, 'PUT', '/v1/settings/models', { aliases: { auto: [] } })
  expect((await here.ran('auto')).run).toMatchObject({ error: { code: 'model_unconfigured' } })
})
