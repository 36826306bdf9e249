/** The client for applications, published as `svc-gateway/client`: no dependency, no module of Node. */

export type { BatchOptions } from './batch.ts'
export type { Change, ChangeListener, FollowListener, LiveListener } from './changes.ts'
export {
  type Batch,
  type Client,
  type ClientOptions,
  createClient,
  type LiveQueryOptions,
  type QueryParameters,
  type QueryText,
} from './client.ts'
export { and, type Group, not, or, type Scalar, type Tests, type Where } from './conditions.ts'
export { ClientError } from './error.ts'
export type { RequestOptions, Upload } from './http.ts'
export type { ImportOptions, ImportProgress, ImportReport } from './import.ts'
export type { AnyRow, AnySchema, SchemaLike } from './schema-types.ts'
export type { ConnectionState } from './socket.ts'
export {
  type ManyWriteOptions,
  type Page,
  type PageOptions,
  type PatchOperation,
  type RelatedWriteOptions,
  type RowId,
  type RowWriteOptions,
  Table,
  type UpdateOptions,
  type UpsertOptions,
  type Versioned,
  type WriteOptions,
} from './table.ts'
export type { TokenProvider, TokenReason } from './tokens.ts'
