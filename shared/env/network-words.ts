import type { VariableGroups } from './variable-words.ts'

/** What all three programs read as other programs do, on Node (docs/deploying.md). */
export const networkWords: VariableGroups<string> = {
  'The network': {
    HTTPS_PROXY: {
      about: 'The forward proxy for `https` addresses. `https_proxy` takes precedence.',
      form: '`http` or `https` address, with `name:password@` before its host where it asks for them; secret',
      unset: 'calls go straight',
    },
    HTTP_PROXY: {
      about: 'The same for `http` addresses. `http_proxy` takes precedence.',
      form: 'as `HTTPS_PROXY`',
      unset: 'calls go straight',
    },
    NO_PROXY: {
      about:
        'What is called without a proxy. `no_proxy` takes precedence. This machine and metadata services are never called by one.',
      form: 'comma list of names, which also stand for those below them, addresses and networks in CIDR form, each with or without a port; or `*`',
      unset: 'everything else goes by the proxy',
      example: '.corp.example,10.0.0.0/8,db.example:8443',
    },
    NODE_EXTRA_CA_CERTS: {
      about: 'Authorities to trust beside those of Node, such as that of a proxy which opens what is encrypted.',
      form: 'path of a PEM file',
      unset: 'those of Node alone',
    },
    NODE_USE_SYSTEM_CA: {
      about: 'Trusts the authorities of the machine as well, from Node 22.19 and 24.6 on.',
      form: '`1`',
      unset: 'those of Node and of `NODE_EXTRA_CA_CERTS` alone',
    },
  },
}
