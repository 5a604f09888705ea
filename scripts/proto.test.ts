import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { GENERATED, generateGateway } from './proto.ts'

it('the code of the tunnel is what its .proto says', async () => {
  expect(await readFile(GENERATED, 'utf8')).toBe(await generateGateway())
})
