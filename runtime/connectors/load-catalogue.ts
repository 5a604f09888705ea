/** Loaded at the first use: a service whose tenants use no connector does not pay for all of them. */
export async function loadCatalogue(): Promise<typeof import('./catalogue.ts')['catalogue']> {
  return (await import('./catalogue.ts')).catalogue
}
