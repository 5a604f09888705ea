import type { ErrorBody } from '../../shared/wire/runtime/error.ts'

/** The API refused what a page wanted to show; the words are the API's own. */
export class PageFault extends Error {
  override name = 'PageFault'
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

export interface Listed<T> {
  items: readonly T[]
  /** The cursor of the page behind this one. */
  next: string | undefined
  /** How many there are, where that was asked for; `10000+` where they were not counted to the end. */
  total: string | undefined
}

/** What a page reads the API with: the operations and the rights of the person who looks at it, and nothing beside them. */
export interface Ask {
  get<T>(path: string): Promise<T>
  list<T>(path: string): Promise<Listed<T>>
  /** Undefined where there is no such thing, or it is not this person's to see. */
  maybe<T>(path: string): Promise<T | undefined>
}

/** The API of this process behind the cookie of a request, so that a page can show nothing that the API would refuse. */
export function asking(fetch: (request: Request) => Promise<Response>, { url, headers }: Request): Ask {
  async function answer(path: string): Promise<Response> {
    const cookie = headers.get('cookie') ?? ''
    const answered = await fetch(new Request(new URL(`/ui/api${path}`, url), { headers: { cookie } }))
    if (answered.ok) return answered
    const { error } = (await answered.json()) as ErrorBody
    throw new PageFault(answered.status, error)
  }

  async function get<T>(path: string): Promise<T> {
    return (await (await answer(path)).json()) as T
  }

  return {
    get,
    async list<T>(path: string): Promise<Listed<T>> {
      const answered = await answer(path)
      const next = /[?&]cursor=([^&>]+)[^>]*>; rel="next"/.exec(answered.headers.get('link') ?? '')?.[1]
      const total = answered.headers.get('total-count') ?? undefined
      return { items: (await answered.json()) as T[], next: next && decodeURIComponent(next), total }
    },
    async maybe<T>(path: string): Promise<T | undefined> {
      try {
        return await get<T>(path)
      } catch (error) {
        if (error instanceof PageFault && (error.status === 404 || error.status === 403)) return undefined
        throw error
      }
    },
  }
}
