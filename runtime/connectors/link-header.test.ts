import { expect, it } from 'vitest'
import { expectWithin } from '../../tests/crowding.ts'
import { linkTo, nextParameter } from './read-body.ts'

const headers = (link: string) => new Headers({ link })

it('reads the link of a relation, wherever it stands and however it is written', () => {
  const text = '<https://a.example/x?page=1,2>; rel="prev", <https://a.example/x?page=3>;rel=next;results="true"'
  expect(linkTo('next', headers(text))).toEqual({
    url: 'https://a.example/x?page=3',
    parameters: { rel: 'next', results: 'true' },
  })
  expect(linkTo('prev', headers(text))?.url).toBe('https://a.example/x?page=1,2')
  expect(linkTo('last', headers(text))).toBeUndefined()
  expect(linkTo('next', new Headers())).toBeUndefined()
})

it('gives a parameter of the address of the next page', () => {
  expect(nextParameter('page', headers('<https://a.example/x?q=1&page=3>; rel="next"'))).toBe('3')
  expect(nextParameter('page', headers('</x?page=4>; rel="next"'))).toBe('4')
  expect(nextParameter('page', headers('<https://a.example/x>; rel="next"'))).toBeUndefined()
})

it('does not take long for a header that is not one', () => {
  const before = performance.now()
  linkTo('next', headers(`<${';a="'.repeat(20_000)}`))
  expectWithin(performance.now() - before, 500)
})
