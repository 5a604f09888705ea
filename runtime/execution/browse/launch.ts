import type { Command } from '../sandbox/sandboxes.ts'

/** Of an image that has one, and of its program there. */
export const BROWSER = 'chromium-headless-shell'

export interface LaunchOptions {
  /** Its profile, its cache and what it shares between its processes; made anew. */
  folder: string
  /** Of the way out, on loopback. */
  proxyPort: number
}

const FLAGS = [
  '--remote-debugging-pipe',
  // The machine is what holds it, and one browser is one call's.
  '--no-sandbox',
  // No graphics card: pages are drawn by the processor.
  ...['--disable-gpu', '--disable-gpu-compositing', '--use-gl=disabled'],
  // Nothing is called but what the page calls: each call is a decision on record.
  ...[
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    '--disable-domain-reliability',
  ],
  ...['--no-pings', '--no-first-run', '--disable-default-apps', '--disable-extensions', '--disable-quic'],
  '--disable-features=Translate,OptimizationHints,MediaRouter,InterestFeedContentSuggestions,AutofillServerCommunication',
  ...['--disable-breakpad', '--disable-crash-reporter', '--mute-audio', '--hide-scrollbars', '--log-level=3'],
  // Fewer processes and threads, which a guest has few of.
  ...['--no-zygote', '--renderer-process-limit=1', '--disable-site-isolation-trials', '--in-process-gpu'],
  ...['--window-size=1280,800', '--disk-cache-size=33554432'],
]

const START = `rm -rf "$HOME"; mkdir -p "$HOME" && exec ${BROWSER} "$@" 3<&0 4>&1 </dev/null >/dev/null`

/**
 * Starts the browser so that it speaks the protocol of its developer tools over its input and output. It gets none of the run's
 * variables: what a page could take from it by a fault must not hold the run's secrets.
 */
export function launchBrowser({ folder, proxyPort }: LaunchOptions): Command['argv'] {
  const variables = ['PATH=/usr/bin:/bin', `HOME=${folder}`, `TMPDIR=${folder}`, 'LANG=C.UTF-8']
  // Loopback goes through the proxy too, and is refused there.
  const proxy = [`--proxy-server=http://127.0.0.1:${proxyPort}`, '--proxy-bypass-list=<-loopback>']
  const flags = [...FLAGS, ...proxy, `--user-data-dir=${folder}/profile`, 'about:blank']
  return ['env', '-i', ...variables, '/bin/sh', '-c', START, 'sh', ...flags]
}
