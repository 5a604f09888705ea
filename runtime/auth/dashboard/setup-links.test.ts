import { expect, it } from 'vitest'
import { setupLink } from '../access.ts'

it.each([
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/setup#token=t'],
  ['http://0.0.0.0:8080', 'http://localhost:8080/setup#token=t'],
  ['http://[::]:8080/', 'http://localhost:8080/setup#token=t'],
  ['https://agents.example.com/waybill/', 'https://agents.example.com/waybill/setup#token=t'],
])('at %s the first owner is made through %s', (base, link) => {
  expect(setupLink(base, 't')).toBe(link)
})
