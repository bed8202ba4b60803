"""Random command lines and configurations for `format`, right and wrong, and what is on the disk
before: the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kraftline.metadata.features import FEATURES, VERSIONS
from tests.fixtures.formatted.cases import CLUSTER, DIRECTORY, OTHER_DIRECTORY, Case, meta

THIRD_DIRECTORY = "07R5amHmR32VDA6jHkGbTA"
_RESERVED = "AAAAAAAAAAAAAAAAAAAAAQ"
_DIRECTORIES = (DIRECTORY, OTHER_DIRECTORY, THIRD_DIRECTORY)
_RELEASES = (
    *(version.name for version in VERSIONS),
    *("3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3", "4.3.1",
      "4.3.9"),
)  # fmt: skip
_BAD_RELEASES = (
    *("4.4", "4.4-IV0", "3.2", "3.3-IV2", "2.8", "5.0", "4.3-IV1", "4", "latest", "", " 4.3",
      "4.3 "),
    *("4.3.", "4.3-iv0", "04.3", "4.3-IV0.1", "3.0-IV1", "3.3-IV0", ".", "4..3", "4.3-IV0-x", "30"),
)  # fmt: skip
_LEVELS = (-1, 0, 1, 2, 3, 5, 99, 32767, 32768, -32769)
_LONG = {
    "-t": "--cluster-id", "-c": "--config", "-r": "--release-version", "-f": "--feature",
    "-s": "--standalone", "-I": "--initial-controllers", "-N": "--no-initial-controllers",
    "-S": "--add-scram", "-g": "--ignore-formatted",
}  # fmt: skip


class Dice(random.Random):
    """`chance(0.1)` comes true once in ten times; the rest throws one part of a case each."""

    def chance(self, of_one: float) -> bool:
        return self.random() < of_one

    def case(self) -> Case:
        dynamic = self.chance(0.7)
        config, voters = self.config(dynamic)
        args: list[list[str]] = []
        if self.chance(0.97):
            args.append(["-t", self.cluster()])
        args += self.quorum(dynamic, voters)
        args += self.versions()
        args += [["-S", self.scram()] for _ in range(self.choice((0, 0, 0, 0, 1, 2)))]
        if self.chance(0.6):
            args.append(["-g"])
        if self.chance(0.03):
            args.append([self.choice(("--bogus", "extra", "-x", "", "--", "-1", "--help", "-h"))])
        self.shuffle(args)
        spelled = tuple(part for option in args for part in self.spelled(option))
        return Case("", spelled, config, self.files(config), cluster=None)

    # The command line

    def cluster(self) -> str:
        if self.chance(0.85):
            return CLUSTER
        return self.choice(
            ("other", "my cluster", "", "-abc", "-1", "-", "--", "a=b", "=", "ü", "@nowhere",
             "#!:\\",
             "a\tb", " a ", "-5.5", "@", "🙂", "x" * 300)
        )  # fmt: skip

    def quorum(self, dynamic: bool, voters: str) -> list[list[str]]:
        flags: list[list[str]] = []
        if self.chance(0.85 if dynamic else 0.15):
            flags.append(self.choice((["-s"], ["-s"], ["-N"], ["-I", voters], ["-I", voters])))
        if self.chance(0.04):
            flags.append(self.choice((["-s"], ["-N"], ["-I", voters])))
        return flags

    def versions(self) -> list[list[str]]:
        args = []
        if self.chance(0.3):
            release = self.choice(_BAD_RELEASES if self.chance(0.2) else _RELEASES)
            args.append(["-r", release])
        args += [["-f", self.feature()] for _ in range(self.choice((0, 0, 0, 0, 1, 2)))]
        return args

    def feature(self) -> str:
        if self.chance(0.1):
            return self.choice(
                ("group.version", "a=b=c", "foo=1", "=1", "=", "", "group.version==1", "x=",
                 "group.version=1 ", " group.version = 1", "group.version=0x1", "group.version=1.0",
                 "metadata.version=4.3", "GROUP.VERSION=1", "group.version=٣", "group.version=+-1")
            )  # fmt: skip
        if self.chance(0.12):
            level = self.choice((*range(5, 33), *_LEVELS))
            return f"metadata.version={level}"
        name = self.choice(list(FEATURES))
        known = [level.level for level in FEATURES[name].levels]
        level = self.choice(_LEVELS if self.chance(0.15) else known)
        return f"{name}={'+' if self.chance(0.02) else ''}{level}"

    def voters(self, node: int) -> str:
        ids = self.sample((node, node + 1, 7, 0), self.randint(1, 3))
        found = [self.voter(number) for number in ids]
        if self.chance(0.05):
            found.append(found[0])
        return self.choice((",", ",", ",", ", ", ",,")).join(found) + self.choice(("", "", "", ","))

    def voter(self, number: int) -> str:
        host = self.choice(
            ("127.0.0.1", "h", "a.example", "[::1]", "[fe80::1:0:2]", "localhost", "h", "h", "")
        )
        port = str(self.choice((19093, 1, 65535, 9093)))
        directory = self.choice(_DIRECTORIES)
        if self.chance(0.9):
            return f"{number}@{host}:{port}:{directory}"
        parts = [str(number), "@", host, ":", port, ":", directory]
        match self.randrange(4):
            case 0:
                del parts[self.randrange(len(parts))]
            case 1:
                at = self.randrange(len(parts))
                parts[at] = self.choice(
                    ("", "x", "-1", "70000", "@", ":", "99999999999", " ", "+1")
                )
            case 2:
                parts[6] = self.choice(
                    ("abc", f"{directory}=", f"{directory}==", f"{directory}A", "")
                )
            case _:
                parts.insert(self.randrange(len(parts) + 1), self.choice((" ", "@", ":", "[", "]")))
        return "".join(parts)

    def scram(self) -> str:
        mechanism = self.choice(
            ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-1",
             "scram-sha-256", "SCRAM_SHA_256", "", "UNKNOWN") if self.chance(0.1)
            else ("SCRAM-SHA-256", "SCRAM-SHA-512")
        )  # fmt: skip
        fields = {"name": self.choice(("alice", "bob", '"carol"', "a b", "ü", '""', '"', "a=b"))}
        # The salt is always given, so that the keys are the same.
        fields["salt"] = self.choice(
            ('"N3E="', "N3E=", "N3E", '"MWx2NHBkbnc0ZndxN25vdGN4bTB5Y2gweg=="')
        )
        if self.chance(0.8):
            fields["password"] = self.choice(
                ("secret", '"a secret"', "p=w", '"', '"x', 'x"', '""a""', "ü€", "a;b", "'q'", "[x]",
                 "é", "ﬁ", "Ⅸ", "a\u00ada", "\u00a0")
            )  # fmt: skip
        if self.chance(0.2):
            fields["saltedpassword"] = self.choice(
                ("YCE=", '"YCE="', "YCE", "?", "=", "YCE==", "Y C")
            )
        if self.chance(0.3):
            fields["iterations"] = self.choice(
                ("4096", "8192", "16384", "+5000", '"4097"') if self.chance(0.7) else
                ("1", "4095", "16385", "x", "", "-4096", " 4096", "4096 ", "99999999999", "5e3",
                 "٤٠٩٦")
            )  # fmt: skip
        if self.chance(0.06):
            fields[self.choice(("foo", "Name", " name", "", "salt ", "bar"))] = self.choice(
                ("1", "")
            )
        if self.chance(0.06):
            fields.pop(self.choice(list(fields)))
        if self.chance(0.06):
            bad = (
                "???",
                "N3E==",
                "N3EAA",
                "N-_A",
                "N=",
                "",
                "N3E=x",
                '"N3E="=',
                "N3\nE=",
                "N3E=\n",
            )
            fields["salt"] = self.choice(bad)
        items = list(fields.items())
        self.shuffle(items)
        body = ",".join(f"{key}={value}" for key, value in items)
        if self.chance(0.05):
            body = self.choice((f"{body},", f",{body}", body.replace(",", ",,", 1), "", "=", ",",
                                body.replace(",", ", "), f"{body},x", body.replace("=", "",
                                                                                   1)))  # fmt: skip
        if "salt" not in fields and "password" in fields:
            body = body.removesuffix(",") + ",salt=N3E="
        text = f"{mechanism}=[{body}]"
        if self.chance(0.05):
            text = self.choice((text[:-1], text.replace("[", "", 1), text.replace("=", "", 1), "",
                                f" {text} ", text + "x", text.replace("=[", " = [", 1),
                                f"[{text}]"))  # fmt: skip
        return text

    def spelled(self, option: Sequence[str]) -> list[str]:
        """One option in one of the ways to write it."""
        flag, value = option[0], option[1:]
        if flag not in _LONG or self.chance(0.5):
            if value and self.chance(0.1):
                return [flag + self.choice(("", "=")) + value[0]]
            return list(option)
        long = _LONG[flag]
        if self.chance(0.15):
            long = long[: self.randint(3, len(long))]
        return [f"{long}={value[0]}"] if value and self.chance(0.4) else [long, *value]

    # The configuration

    def config(self, dynamic: bool) -> tuple[dict[str, str | None], str]:
        """What changes BASE, and voters for the command line."""
        node = self.choice((1, 1, 1, 2, 0, 2147483647))
        roles = self.choice(
            ("broker,controller",) * 4 + ("controller", "broker", "controller,broker")
        )
        listeners = ["PLAINTEXT://127.0.0.1:19092"] if "broker" in roles else []
        if "controller" in roles:
            host = self.choice(("127.0.0.1", "", "0.0.0.0", "c.example", "127.0.0.1"))
            listeners.append(f"CONTROLLER://{host}:19093")
        self.shuffle(listeners)
        found: dict[str, str | None] = {
            "node.id": str(node),
            "process.roles": roles,
            "listeners": ",".join(listeners),
            **self.log_dirs(),
        }
        if not dynamic:
            voter = node if "controller" in roles else node + 1 & 0x7FFFFFFF
            found["controller.quorum.voters"] = f"{voter}@127.0.0.1:19093"
            if self.chance(0.8):
                found["controller.quorum.bootstrap.servers"] = None
        if self.chance(0.15):
            found["unstable.feature.versions.enable"] = self.choice(("true", "false", "TRUE"))
        if self.chance(0.2):
            found |= self.odd_setting(node)
        return found, self.voters(node)

    def log_dirs(self) -> dict[str, str | None]:
        names = self.sample(("a", "b", "c", "deep/er"), self.randint(1, 3))
        if self.chance(0.05):
            names.append(self.choice(("file", "file/below", "a", "q/", "./q", "")))
        dirs = self.choice((",", ",", ", ")).join(f"DIR/{name}" for name in names)
        found: dict[str, str | None] = {"log.dirs": dirs}
        if self.chance(0.3):
            found["metadata.log.dir"] = f"DIR/{self.choice((*names, 'm', 'm'))}"
        return found

    def odd_setting(self, node: int) -> dict[str, str | None]:
        voters = (
            "1@h:1,2@h:2", "x@h:1", "1@h", "1", "", f"{node}@h:1,{node}@h:2", "1@[::1]:1",
            "1@h:70000",
            "1@h:x", f"{node}@a b:1", f"{node}@h:1,", f"{node}@h_x:1", "-1@h:1",
            f"{node}@PLAINTEXT://h:1",
            f"{node}@@h:1", f"{node}@h:1@", "1@:1",
        )  # fmt: skip
        choices: dict[str, Sequence[str | None]] = {
            "controller.quorum.voters": voters,
            "controller.quorum.bootstrap.servers": (None, "", "h", "h:x", "h:1,i:2", "h:70000",
                                                    "[::1]:1", ":1"),
            "process.roles": (None, "", "brokr", "broker,broker", "controller, broker", "Broker",
                              "broker,"),
            "node.id": (None, "", "x", "-1", "-2", "99999999999", " 3 ", "+4", "1.0"),
            "broker.id": (str(node), str(node + 1), "-1", "x"),
            "controller.listener.names": (None, "", "OTHER", "CONTROLLER,OTHER", "controller",
                                          "PLAINTEXT"),
            "listeners": (None, "", "nonsense", "PLAINTEXT://:1", "CONTROLLER://:1",
                          "PLAINTEXT://:1,CONTROLLER://:1", "PLAINTEXT://:1,CONTROLLER://h:-1",
                          "PLAINTEXT://:1,CONTROLLER://:2,CONTROLLER://:3",
                          "SSL://:1,CONTROLLER://:2"),
            "advertised.listeners": ("PLAINTEXT://h:1", "PLAINTEXT://h:1,CONTROLLER://c:2",
                                     "CONTROLLER://c:2",
                                     "PLAINTEXT://0.0.0.0:1",
                                     "PLAINTEXT://h:1,CONTROLLER://0.0.0.0:2", ""),
            "listener.security.protocol.map": ("CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", "x",
                                               "CONTROLLER:SSL,PLAINTEXT:PLAINTEXT", ""),
            "inter.broker.listener.name": ("PLAINTEXT", "CONTROLLER", "NOPE"),
            "inter.broker.protocol.version": ("3.9", "nonsense"),
            "log.dir": ("DIR/other", ""),
            "log.dirs": ("", "DIR/a,,DIR/b", ",", "DIR/a,DIR/a"),
            "metadata.log.dir": ("DIR/file", "/proc/nope"),
            "unstable.feature.versions.enable": ("maybe", ""),
            "num.partitions": ("x", "0", "3"),
            "log.retention.ms": ("0", "-1"),
            "log.roll.hours": ("0",),
            "default.replication.factor": ("3", "-1"),
            "nothing.known": ("x",),
        }  # fmt: skip
        key = self.choice(list(choices))
        return {key: self.choice(choices[key])}

    # The disk

    def files(self, config: dict[str, str | None]) -> dict[str, str]:
        node = config["node.id"]
        number = int(node) if node is not None and node.isdecimal() and len(node) < 11 else 1
        found = {"file": "a file, so that nothing can be below it"}
        for name in ("a", "b", "c", "m", "other", "deep/er"):
            if self.chance(0.2):
                found |= {f"{name}/{file}": text for file, text in self.there(number).items()}
        return found

    def there(self, node: int) -> dict[str, str]:
        directory = self.choice(_DIRECTORIES)
        good = meta(node, directory=directory)
        bare = good.replace(f"directory.id={directory}\n", "")
        match self.choices(range(8), (8, 2, 2, 3, 1, 1, 1, 1))[0]:
            case 0:
                return {"meta.properties": good}
            case 1:
                return {
                    "meta.properties": self.choice((bare, good.replace("=", " : "), f"{good}x=y\n"))
                }
            case 2:
                return {
                    "meta.properties": meta(
                        node, cluster=self.choice(("other", "")), directory=directory
                    )
                }
            case 3:
                wrong = self.choice((
                    meta(node + 1 & 0x7FFFFFFF, directory=directory), meta(node,
                                                                           directory=_RESERVED),
                    meta(node, directory="x"), meta(node, directory=""), meta(node, version=2),
                    good.replace("version=1", "version=x"), good.replace("version=1\n", ""),
                    good.replace(f"cluster.id={CLUSTER}\n", ""), good.replace("node.id=",
                                                                              "broker.id="),
                    good.replace("version=1", "version=0").replace("node.id", "broker.id"),
                    f"version=0\nbroker.id={node}\n", f"version=0\nbroker.id={node + 1}\n",
                    f"version=0\ncluster.id={CLUSTER}\n", "", "version=1\n", "\\u00zz",
                    good.replace("version=1", "version=01"), good.replace("version=1",
                                                                          "version= 1 "),
                    good.replace("node.id=", "node.id=+"), good.replace(f"node.id={node}",
                                                                        "node.id=x"),
                    good.replace(CLUSTER, f"{CLUSTER} "), good.replace(directory, f"{directory}=="),
                    good.replace(directory, f"{directory}A"), good.replace("node.id", "Node.id"),
                ))  # fmt: skip
                return {"meta.properties": wrong}
            case 4:
                return {"bootstrap.checkpoint": "half"}
            case 5:
                return {"some-topic-0/00000000000000000000.log": ""}
            case 6:
                return {"meta.properties/x": "a directory in the place of the file"}
            case _:
                return {"meta.properties.tmp": "interrupted", "bootstrap.checkpoint": "half"}
