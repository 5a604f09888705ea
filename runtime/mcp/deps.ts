export interface McpRouteDeps {
  /** The API of this very service, as any client would call it. */
  call: (request: Request) => Promise<Response>
  maxBodyBytes: number
}
