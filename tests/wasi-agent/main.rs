// A program for WASI preview 1 that makes steps: the source of agent.wasm, compiled with
// rustc --target wasm32-wasip1 -C opt-level=z -C lto -C panic=abort -C strip=symbols -o agent.wasm main.rs
use std::{env, fs, process, thread, time::Duration};

mod waybill {
    #[link(wasm_import_module = "waybill")]
    extern "C" {
        fn call(path: *const u8, path_len: usize, body: *const u8, body_len: usize) -> i32;
        fn answer_size() -> usize;
        fn answer(to: *mut u8);
    }
    pub fn ask(path: &str, body: &str) -> Result<String, String> {
        let (status, text) = unsafe {
            let status = call(path.as_ptr(), path.len(), body.as_ptr(), body.len());
            let mut bytes = vec![0u8; answer_size()];
            answer(bytes.as_mut_ptr());
            (status, String::from_utf8(bytes).unwrap())
        };
        if status == 200 { Ok(text) } else { Err(format!("{status} {text}")) }
    }
}

fn member<'a>(json: &'a str, name: &str) -> &'a str {
    let from = json.find(&format!("\"{name}\":\"")).map_or(0, |at| at + name.len() + 4);
    &json[from..from + json[from..].find('"').unwrap_or(0)]
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let ask = waybill::ask;
    match args.get(1).map(String::as_str) {
        Some("print") => println!("{} {}", args.join(" "), env::var("KEY").unwrap_or_default()),
        Some("exit") => process::exit(9),
        Some("panic") => panic!("not so"),
        Some("spin") => loop {},
        Some("sleep") => thread::sleep(Duration::from_millis(args[2].parse().unwrap())),
        Some("memory") => {
            let mut all: Vec<Vec<u8>> = vec![];
            loop { all.push(vec![1; 1 << 20]) }
        }
        Some("disk") => {
            for round in 0.. {
                if let Err(error) = fs::write(format!("/work/big-{round}"), vec![7; 1 << 20]) {
                    eprintln!("{error}");
                    process::exit(3)
                }
            }
        }
        Some("append") => {
            use std::io::Write;
            let mut file = fs::OpenOptions::new().create(true).append(true).open("/work/log.txt").unwrap();
            for _ in 0..20_000 { file.write_all(&[b'x'; 100]).unwrap() }
            println!("{}", fs::metadata("/work/log.txt").unwrap().len())
        }
        Some("escape") => {
            for path in ["/etc/passwd", "/work/../etc/passwd", "../../etc/passwd", "/proc/self/environ", "/"] {
                println!("{path}: {}", fs::read_dir(path).map(|_| ()).or(fs::read(path).map(|_| ())).is_ok())
            }
            println!("{:?}", std::net::TcpStream::connect("127.0.0.1:80").is_ok())
        }
        Some("flood") => loop { println!("{}", "x".repeat(10_000)) },
        Some("calls") => loop { let _ = ask("/v0/input", ""); },
        Some("files") => {
            fs::create_dir_all("/work/made/deep").unwrap();
            fs::write("/work/made/deep/one.txt", "one").unwrap();
            fs::rename("/work/made/deep/one.txt", "/work/made/two.txt").unwrap();
            fs::remove_file("/work/gone.txt").unwrap();
            let mut names: Vec<String> =
                fs::read_dir("/work").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            println!("{} {}", fs::read_to_string("/work/made/two.txt").unwrap(), names.join(","))
        }
        Some("tools") => {
            let file = r#"{"name":"write_file","arguments":{"path":"by-tool.txt","content":"seen"}}"#;
            ask("/v0/tool", file).unwrap();
            println!("{}", fs::read_to_string("/work/by-tool.txt").unwrap());
            println!("{}", ask("/v0/tool", r#"{"name":"exec","arguments":{"command":"true"}}"#).unwrap_err());
            println!("{}", ask("/v0/input", "").unwrap())
        }
        _ => {
            let step = ask("/v0/steps", r#"{"name":"one"}"#).unwrap();
            if !step.contains("\"cached\":true") {
                fs::write("/work/one.txt", "one").unwrap();
                let path = format!("/v0/steps/{}/complete", member(&step, "stepId"));
                ask(&path, r#"{"output":null}"#).unwrap();
            }
            let said = ask("/v0/model", r#"{"prompt":"what?"}"#).unwrap();
            let three = ask("/v0/steps", r#"{"name":"three"}"#).unwrap();
            if !three.contains("\"cached\":true") {
                let path = format!("/v0/steps/{}/complete", member(&three, "stepId"));
                ask(&path, r#"{"output":"three"}"#).unwrap();
            }
            let one = fs::read_to_string("/work/one.txt").unwrap();
            let whole = format!(r#"{{"output":{{"result":"{one}:{}:three"}}}}"#, member(&said, "text"));
            ask("/v0/finish", &whole).unwrap();
        }
    }
}
