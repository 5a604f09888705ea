import { describe, expect, it } from 'vitest'
import { activate, ConfigError } from './active-config.ts'

const options = { hostHasProcesses: false, builtinPrices: { find: () => undefined }, gateHost: {} }
const config = (route: object = {}, rest: object = {}) => ({
  price: [{ model: 'local/small', input_per_mtok: 1, output_per_mtok: 2 }],
  provider: [{ id: 'local', dialect: 'chat', base_url: 'http://127.0.0.1:9', auth: 'none' }],
  route: [{ match: {}, mode: 'enforce', ladder: ['local/small'], ...route }],
  ...rest,
})

describe('a config that asks for what this version does not do', () => {
  it.each([['shadow_rate in [[route]] #1', config({ shadow_rate: 0.1 })]])('is refused by name: %s', (what, source) => {
    expect(() => activate(source, options)).toThrow(ConfigError)
    expect(() => activate(source, options)).toThrow(`${what} is not available in this version`)
  })

  it('is accepted without those', () => {
    expect(activate(config(), options).config.routes).toHaveLength(1)
  })
})
