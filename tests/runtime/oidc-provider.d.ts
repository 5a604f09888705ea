declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'

  interface Found {
    accountId?: string
    clientId?: string
    scope?: string
    exp?: number
    aud?: string | string[]
    destroy(): Promise<void>
  }

  /** As much of it as the tests use; the package brings no types. */
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (request: IncomingMessage, response: ServerResponse) => void
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
    AccessToken: { find(token: string): Promise<Found | undefined> }
    on(event: string, listener: (...args: never[]) => void): void
  }
}
