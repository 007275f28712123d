/** What the gate and its helper inside a namespace tell each other over IPC. Types only. */

export interface HelperFile {
  readonly path: string;
  readonly base64: string;
}

export type HelperOrder =
  | {
      readonly kind: "open";
      /** TCP ports to listen on. */
      readonly ports: readonly number[];
      /** Bring the network up, and listen for DNS over UDP: the first time in a namespace. */
      readonly first: boolean;
      /** Refuse a namespace with other ways out. */
      readonly exclusive: boolean;
      /** Name servers that are to be addresses of the namespace's own loopback. */
      readonly nameServers: readonly string[];
      /** Written before anything else, in a file system that the namespace alone has. */
      readonly files: readonly HelperFile[];
    }
  /** Everything was taken over: the helper may end. */
  | { readonly kind: "done" };

export type HelperReport =
  /** With a `net.Server`. */
  | { readonly kind: "tcp"; readonly port: number }
  /** With a `dgram.Socket`. */
  | { readonly kind: "udp" }
  /** Something else listens there already. */
  | { readonly kind: "taken"; readonly port: number }
  | { readonly kind: "opened"; readonly v6: boolean }
  /** Interfaces that lead elsewhere. */
  | { readonly kind: "ways-out"; readonly interfaces: readonly string[] }
  | { readonly kind: "failed"; readonly message: string };
