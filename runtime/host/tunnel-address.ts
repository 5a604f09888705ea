/** Where nodes dial in once one is announced, unless PLATFORM_TUNNEL_BIND says otherwise. */
export const DEFAULT_TUNNEL = { host: 'localhost', port: 8081 }
