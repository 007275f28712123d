/** What the machine around the gate is, as far as an address decision needs it. Types only. */

/** Canonical texts of addresses (`base/ip.ts`). */
export interface Surroundings {
  /** The addresses of this machine's own interfaces. */
  readonly own: ReadonlySet<string>;
  /** `address port` of what the gate itself uses: resolvers, admin, parent proxy. No destinations for a sandbox. */
  readonly endpoints: ReadonlySet<string>;
}
