/** What the bench asks of each contender. Pure. */

export interface Workload {
  readonly name: string;
  /** What one "request" of it is, for the report. */
  readonly about: string;
  readonly host: string;
  readonly path: string;
  readonly connections: number;
  /** Whether each request pays for its own TCP connection, CONNECT and TLS handshake. */
  readonly fresh: boolean;
  /** Whether the contender ends TLS and puts the secret on; the origin answers 403 to a request without it. */
  readonly injected: boolean;
  /** The most that Sallyport may cost of what Squid costs, where the project promises one. */
  readonly bound?: number;
}

export const INJECTED_HOST = "telemetry.example.com";
export const TUNNELLED_HOST = "mirror.example.net";

export const WORKLOADS: readonly Workload[] = [
  {
    name: "inspected",
    about: "intercepted and injected, keep-alive, 200 bytes",
    host: INJECTED_HOST,
    path: "/small",
    connections: 64,
    fresh: false,
    injected: true,
    bound: 0.7,
  },
  {
    name: "inspected-64k",
    about: "intercepted and injected, keep-alive, 64 KiB",
    host: INJECTED_HOST,
    path: "/large",
    connections: 64,
    fresh: false,
    injected: true,
  },
  {
    name: "inspected-new",
    about: "intercepted and injected, a connection for each request",
    host: INJECTED_HOST,
    path: "/small",
    connections: 16,
    fresh: true,
    injected: true,
  },
  {
    name: "tunnel",
    about: "tunnelled unseen, keep-alive, 200 bytes",
    host: TUNNELLED_HOST,
    path: "/small",
    connections: 64,
    fresh: false,
    injected: false,
  },
];
