/** The formats of `svc import`. In a separate module, so that the help does not load the client. */
export const IMPORT_FORMATS = ['csv', 'ndjson'] as const
export type ImportFormat = (typeof IMPORT_FORMATS)[number]
