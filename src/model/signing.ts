/** How a request is signed on its way out. Types only. */

/** How what leaves is signed: AWS Signature Version 4. */
export interface SigningSource {
  readonly id: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string | undefined;
  readonly region: string;
  readonly service: string;
  /** The body is not part of what is signed. */
  readonly unsignedPayload: boolean;
}
