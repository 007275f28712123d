/** Reads the Prometheus text format far enough for assertions. Pure. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metrics {
  readonly samples: readonly Sample[];
  /** Of all samples of this name whose labels include these; 0 where there is none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Metrics {
  const samples = text.split("\n").flatMap((line) => sampleOf(line));
  return {
    samples,
    sum(name, labels = {}) {
      return samples
        .filter((sample) => sample.name === name && includes(sample.labels, labels))
        .reduce((total, sample) => total + sample.value, 0);
    },
  };
}

function sampleOf(line: string): readonly Sample[] {
  const parts = LINE.exec(line);
  if (parts === null) return [];
  const [, name = "", labels = "", value = ""] = parts;
  const pairs = [...labels.matchAll(LABEL)].map(([, key = "", text = ""]) => [key, text] as const);
  return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
}

function includes(labels: Sample["labels"], wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}
