"""Made by scripts/fit_tokens.py. Do not edit."""

OTHER_LETTER = "~"
"""Stands for every Latin letter outside ASCII."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz~"
_LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz"
_RATES = (
    "a000l303230000l0d000401102b6fop2ulp84r1kq3vp4ej6oqs1td4g2h1in05g01da1ai2a04hko4dd5dl22eck4ed9bf3fk75"
    "b58ga4hb49304329ce8110963001b5303bf6nlc41gi2g939a1gs3723jnc1m98dqv2r706pn3g34sv2687brq2ei4ilc1ohe5kk"
    "ce83ki8f18rla5pf30001009l41000015100a0j0b089lri2qrlegjbqj37co1e4rqwru7ahvc3p586q9gk49ime6bbegk7sj5ce"
    "115bh5v81jl28lc535a7r0th32o71hlr7ph52i34ju588lhb4oe6r30270a8c3bj45emn2168p73be4110d31744000011n00101"
    "0219g2kea1nc28lj16m22q1415dj73vgsxotittomqx5wmalagg60hrpwke5h521a3i4q2b331f832173fg0me7o7i2b915v5dcc"
    "44db104h8q6le6qaf2gt14ribfi4ax2346m6827f302121183a200081m000f6f068f3lok0ubr3opsgl4jnagllcou6lc4bm52n"
    "g14pkeo11mv44ijj235miao7g9mwdarxt8lq4utf2uty32vodffg5rgu5rd75433s715nsgsb7k7ujl2on77ptnmccoemv99lfe5"
    "7ha7766e72bjga634a8336ca4h6c7"
)
PAIR_BREAKS = {
    first + second: _LEVELS.index(_RATES[row * len(_LETTERS) + column]) / len(_LEVELS)
    for row, first in enumerate(_LETTERS)
    for column, second in enumerate(_LETTERS)
}
"""Two letters -> share of words in which a token ends between them."""

OTHER_HAN_TOKENS = 1.3
_HAN = {
    0.5: (
    "么京亿什但佳候划删功务努北司址央如宿少尤己希怎择据推措搜操昨朋果欢浏涉添滤知社筑络绩续荐营规觉访诉谢责软输返酒附际须题馈"
),
    0.6: (
    "一丈世业个义些产今以们件价企何使供價免兑共关其具况准凌刺动医午协卫历厨友发可否员咨哈响哪喜因国圳圾坡垃培基場妈姐娛娱学孩容导属工左市常开录影彻径律応意户所扶技括持指捷排控描提播政整文方施旅族时晨曜最服"
    "术析标样模欧殊比求治注津活济浙消涨湾漂然爸版现理生电疗疯皇码研础租积究突竞管系紹纽织绍经绑结统继综网置联聘育自艺获薦虽解詳计认训议讯设证评话询详误调贡败账费资趋践较辽近这道量销错间電需非革韩題领验骤默"
),
    0.7: (
    "上下不中为主举久乐习争事亡交享介他代任伙传住体作例俄保信停偷允全公冠决出函分则创别制办加助势務即及取只台史右合同后告品售唯問善回团地坚备多够好妹始媒字安完定实宣寻小展师幸序应店度建式当待得徽必态思恢息"
    "情成投拥挥接摘支改放效数料新旗易映显晚普智曝更有期机束条来校格森検毕民気汽沒没法洲测港演潮特状献环甚用界盈益目直示禁秀科称程稱稳符第答策简精素索細组聞胆能般英苹范菠蒙藝蛛蜘表装要视訊読论诀识该请谓費資"
    "购贯赚赛起足較轻迎运还进违退通那采释里重钟間问闻阅阶陆集青面音颜飞香黎龄"
),
    0.8: (
    "万东两严串之予二于五亚亞亮人从仕份众优会低你便促修先党入兴内农减几凤凰击利到前力勒包化区十升单南印参变另召含启商围固在场型城域報境增壇声変复大天委婆存官宝家密対就川已币布帖師席平年并库底庭康强形心志感"
    "慧戏我或战执挑换授探收攻故斤断明星春是暂曲望本杂权材板极染查根检榜止正此步段每污满漏激照片球由略畫登盖相看真确碰神秘立童等签篮类级纪线细维编美群老考者而背脑至致舒色藏虑行術覆覧言設让许语谁负质贫贸超越"
    "趣距身车载辅込过述选速造避邮部都配醒銀録鐘针钱链閱闭降限除险随隐障频骗高"
),
    0.9: (
    "三与专且丰九也买了云仅付伴似位価們值健備元充內典养再军列初判剧劳動华占危却原去又双反受口句号各名吗味員器四困國块坛士売处外夫失奋女她妻子宁它客富寸对将尊尋尺尼州巧巨巴帮干广异引彩很後徐徴快性总悠您惠態"
    "房手打扩找承把护报担招拟拿按摄教斗斯无日早時木未村构柏柳核案梦械植次歌水沙河洞浩海深游湖源漫澳点爱物狂狐猜率玩現產男画留番百的监着石破確福离私种秒空站章算米終結網編约练终绿缓罗署聊职航节苏落西观览証評"
    "話認説讨记试说读课象販質财路載转辆达连追送透途連钮银键长開队防院难雄露靠页项预首験"
),
    1.0: (
    "々丁七丘丝並临丸丹丽乃乌乎乔乗乘乙乡书乱乾亂亏互井亦亩亭亲仁仍仔仙令仪仲伊伍伏休伝伟伤伦伯估伸佐余佛佩來依侠侣侧侵係俊俗俱俺個倍倒借倡値倫债倾假偏做側偶偿傅储催傳傷働像億優儿兆光克兒兔兩八六兰兵兼兽冊"
    "册冒写冬冰冲冷冻净凉凝凡処凭凯刀切刊刑刘刚別刷券刻則削剑剩剪副割創劇励劲効勇勝募勢勤勿匙區千半卓協卖単博卡卢卸厂厅厉压厚厦县參叉収叔古叫叶吃吉吊吐向吕君吧听吴吸吹吾呀呈呢周呵呼咋和咖哥哦哲唐唱啊啥啦喘"
    "喝單営嗎嗯嘉嘛嘴嘿団园囲図图圆圈園圖團土圣均坊坏坐坑坝坦坪埃堂堡堵塑塔塘塞填墙墨壁壮夏夜太头夹夺奇奈奉奏契奔奖套奥奴奶妇妙妮姆姑姓姜姨姿威娃娜婚婷媳媽嫁嫌嬉孔孕孙孟季孤學宅宇守宋宏宗宜実宠审室宫宮害宴"
    "宽宾寄寓察實寨寫寶寺寿封専射將專對導尔尖尚尝尸尽尾局层居届屋屏屯山岁岗岛岩岭岳岸峡峰島崎巡差帅帐帝带帰帳帶帽幅幕幻幼幽広庄庆床府废座庫廉廣延廷弃弄弊弗弘弟张弱張強弹归彦役彼往征徒御復微德忆忍忘忙忠忧念"
    "忽怀怒怕怖怡急怪恋恐恒恩恶悉悟患悦悪悲惊惑惜惨惯想愛愿慈慎慢慰懂應戀戒截戰戲戴戶戸戻才扎払托扣扫扬扰扱批抓抗折抜択抢披抱抵押抽拆拉拍拒拓拔拖拨拼拾挂振挺捕损掃掉掌掛採插換握揭援搏搞搬搭携摆摇摩撃撑撒撞"
    "撤撷擊據擦擷攝敌敏救敗敢散敦敬敵數於旁旋既旦旧旨旭旺昂昆昌昔晋晒晓景晰晴晶暇暑暖暗暴書曼曾會月朗朝末札朱杀杉李杏杜杨杯東松林枚枝枪柄某柔柜柱柴査栏树栗株桂桃桑档桥桶梁梅條梨梯棋棒棚椒楚業極楼楽様槽樂樓"
    "樣横橋機權欠欣欲欺款歉歡武歩歲歴歷死残殖殺毁母毎毒毛毫氏气氣氧永汁汇汉汗江池汤決沁沃沉沟油沿況泄泉泊泛泡波泰泳泽洁洋洗洛派流浅浓浪浮浴涛润涩涯液涵淘淡混清済渐減渡温湘湿満準滋滑滚滨滴滿漢潔潘潜潭澡灣火"
    "灭灯灰灵灾炉炎炒為炼烈烟烦烧热無焦煙熊熟熱燕營父爷爽牌牙牛牡牢牧牲犯狗狠独猛猪猫猴玄玉王玖玛玲玻珍珠班琳琴瑞璃瓜瓣瓦瓶甘甜産田甲申甸畅異當疆疑疫疲疼疾病症痛療発發白皆皮盆盐盒盗盘盛盟監盤盾省眉県眠眼睛"
    "睡督瞬矩短砂硕碍碎碑碼磨礼祖祝祥票禽禾秋秦移稍税種稿穆積穿窗窥竟端競竹笑笔筆筋筛筹箭箱篇築籍粉粒粗粤粮糕糖紀約紅納純紙級紧紫累組経絡給統絲絶經続維総緒線締縮績繁續纠红纯纳纵纷纸纹绕绘给绝绪缘缩缴罚罪羅"
    "羊義羽習翔翠翻翼耀耐耗耳聚聪聯聲職肃肉肌肖股肤肥肯胃胖胜胞胡胶胸脱脸腐腕腰腹腾腿臣臺與興舍舞舟船良艳艾芝芬芯花芳芸芽苍苑苗若苦茶茸草荒荡荣药荷莉莎莓莫莱莲菜華菲萄萝萨萬葉著葡董蒂蒲蓝蔡薄虎虐處號虫虹蛇"
    "蛋蜜蝶融血街衛衡衣补袋袖被裁裂裏裕裙補裝裸製見規視親観覽觀见角触訂計討記訪許訳詞詢試誉誌語說誰課調談講謝證識議護讀變讓订讲诊词译诗诚诱诸诺谈谋谜谨谱谷豆豊豪貌負財貨責買貸貼賞購贝贤货贴贵贷赁赋赌赏赔赖"
    "赞赠赢赤赫走赴赵赶跃跌跑跟跨跳踏踪躁車軍輪輯轉轩轮辉辑辛辞辣辦辨辰農边辺迁迅迈远迟迪迫迷迹适逃逆逊逐递這週進逸逻逼遂遇遊運遍過達違遗遠遣遥適遭遮邀還邦邪邻郎郑郭酷酸醉醫野金鉴錄錯钢钥钻铁铜铭铺锁锅锋锐"
    "锦镇長門閉閲關门闪闲阁阳阴阵阻阿陈陌陪陰陶陷険陽隆隊階隔際雀雅雑雕雙離難雨雪零雷震霍霞靖静鞋韓響頁頂項順須領頭頻頼額願類顶顺顾顿颗额風风飛食飯養餐館饭饮饰馆馨馬驗马驱驻驾骑骚骨體鬼魂魅魏魔魚鱼鲁鲜鳥鸡"
    "鸣鸭鸿鹅鹏鹿麒麗麟麦麻麼黃黄黑點鼎鼓鼠齐龍龙"
),
    1.1: (
    "仓傍傻剣剰匹卷叩吓吞命喬嘈噩嚮増寒屈履岐幂庞廃彝從恣憎懶扁挨挾掙掺摻撇擲擾敲替杰架栄框桌梗梳棱概構標歎汰沛浄測潛濫瀏炸熵狙畳瞒硬磁磅秩稚竄篩簿糙綜緑緬縛縱繋繩缅缺罷腳薩蘊蘋虚蠻覚診詐誕論謬豎賛贈転輸辟"
    "辩辭遵選郵酬錠鏈関閾闸隕韃韻預頑顛颠飢餓饥馀駆髮鸟麥"
),
    1.2: (
    "亜倉勾叠喰噪孜孵寧帧幷循恵悄惰慌慷拜揃摁昇昧曖枯柵梱汚渇渉煩燥爆瑣瑪環疪盧筒箇節簽綁綴纖罫聴脚腊臭葛蔵訣詰請譬譲貯軽迂銭錨鍵钧镜陥靼鞑頒顧"
),
    1.3: (
    "伽傣傾凹剖劫勧匈卧吁嚐囊姚孮尧庚悩惫慨懈懸捗捲擺敖汪汲湟溃滕滩瀘炳爛狭獻甫畲疊瘦稠篡簡籁粋粘緯縫總纜绸羚羲翘翟臘芹茄荔蔓蜂蟲裴警谭賬軸邏邢邹醇錶铃锚锲闵霜靳韌颙馥骥骼鬆"
),
    1.4: (
    "儀勁匯匿喚奮崩幀弦弧扔撲攬朔枠桁樱汎洩涎淆湯瀑烂焉焘瓏痕箫簫缝脈腌葫葱蒋薔迥遷鄧銳隧雇鞍餚"
),
    1.5: (
    "丛伪冯凶劍厄厳叢唆唤喆圓垓垢壶婢屠峭帘廢彈恰憲扛扼捨揹撰昏毋溝滄漸潰灶燒獄瑜畏疙瘩盼眾睹秭穰窄窮竈簧繰纱绞羨臂芙芥蔷衍袁誓誡謂謹诫賦躍閘闖闡顏馋駄驟驹鬥鹉鹦黨齊"
),
    1.6: (
    "伞佔倆倔偎偵偽償兌冀冥凍凱剎剔剥勉卑厭叮叱吳咤唇唠啞嗑嗨嘞坨垂塌壽奚奠奪妩妫媚宪岱崖崛巖帥幄幹彥徹悶憤戈戚戳抄抹拙拠挠挽挿捧搅撓撥斥昕晃晕曆杠枫柯栖棄棧椭榉榛榴槓檻殘浇浑淄溢溫溶滅漠潤澀濮瀚烁烊烹焱熄"
    "燈狱珊瑟畔痼癮盜盱瞩瞻祯稼窘竊笙筝箴紐継綬繳绒绵罕羣聋聩肅肢肴脣脫舌苛茨茵荊荧萦蔭蕭蘆蘸蛮蜀蝉覈觅觸讼谎谦貿賃賈賠賢賭赣躊輔輛輩辻遲邃酪醋釣銅鋒鍾鑰閒閩闯闽阈陋隠靜靴頗颂颈饪騙驚髏鮮鲍鳕鳳鸠鸦鹗鹨鹬黏"
    "𧢒"
),
    1.7: (
    "亓佈併侉侶俐俠倦偲傑傢僚僵冶凑刨劈勃卿叛呐咎咔哑哗啰喋喫嘆嘩囉圧坞垣埋埠堅堪壊壞壩奎妥妨娅娴婶孝宕宙審尘尹屿峪崭巍巩庸弥彎彙彷彿恆恳恼悖懒扉抛拢拷挪挫捆捉捏掏掘揽搪搶摊擅擎攀攒敘斩斬旱暫枷柘栈榈槛樟櫻"
    "毗沦沧洒洼涂淇淺渊渔渲湊溅溼滥滯漱潺澤瀕瀾烏焯煸牀牺狡猾獅玮瑤畝疏瘆瘋瘤盔瞅矢矫祕祸禮秉秧穩窃竣笨紛絕絞緣緻繞繪绶缚肾胀胳脾腸膊膨舆舊舶艘艱芦茲荃荆菩蒜蒼蓬蔽蕴薯藉藍虛蟬衔裔裹襯觞託讚讶诠诧诵豐豫貘貝"
    "貫賓贞贬赎赘趙跡跻踌踮蹋蹟躺轿辈逝遅邵鄰酣釜鉤鎖钉钩铎镖陀隱雜韶颇颓飽飾餒饶饺馁馒騰骂骐髅髓鳴麓黙"
),
    1.8: (
    "丑丟仨仮佇侈儘冗刪劉劣勘勞勵卉卤厌叙叹呷咀啓嗦嘗嘲噢坠垫墩壓壳夸夾奕奨妄娟婉宰宵宸寂寬寰尬尴屎岚峯峻崔巾帕帜帷幌庙廚廳弯彭従怨恨恭悅悚愚愧慣慮憑憧憬憶懷扮抉抑拡拯挙挤捐掀掩揚揮損摔擁擬攜斐斓晤晦暢曉栽"
    "梭棍棘棣椅楊榄槍歇歧歸毡毯氛泪淚淨渴湛溯滾澜濃灌炖熔爨爭牆牯牵猶獨珑琉琐瑕瑶瓊疵痴盯砍碟碱磊磕祈祗稀稽竖竺笛簇綠綽緊緩練繼纔绎绰缆翰耍耕耶聖聰肄肆肚肠膀膝臉臨舫芒芭茫莊莹莺菇菊菖菘萧葆葵蒸蘇蘑蘭虧蝎蝗"
    "衬衷袂訓誇諸謎謠譜譽谍谐豁豌貓貢贏贺贾趕踐踞蹤躇躲軟轰迭逾遞遺郁釈鋼錦鑼钓铅闷阐阔陡陳陸隶隻雍雯雲靈韦韵頓駐驅驴驿骄骷魁魉魎魯鲈鹑鹤鹼麋齡"
),
    1.9: (
    "両丢丧乏仿伐侦侨俩偉傲儒儲兹刮刹剛匣匪匾卜卻厲吵咱哎哺唉啟啡啤喻嚴圍坎坤坷執塊奧孛孫宛宥屬崇巷幣幫廊廠徑徵忌悔悬惧愁愈愉愤慕憾戛扇扭挖捞搖撕撼擇擔擴斋斑斜斷昊朴朵枕栅桔棉棕棵榮権樹檯欄歐殿沮浒浸涮淀淑"
    "溜滞滸漓濒濟濾炫炭煎煮爾犹狀狮玫琼瑰畢瘾盡睿矛矮矶碧礎穷範籤粹糊糟縣織繫纤缀罢羡翅翡脆脉脏腔腦舅舉艰茂荟荫萊蓉蓋蔚蔬薛虾蜡衆衝衰裡訴註該詹諾诞谊谣貴賣賴賽趟輕迴逗逛邓郊郝鄉酥酱醺釋針鈕鎮鐵鑑锣锯锻阜陣"
    "隙隨險雁雖顯颁飘餘饱饼饿骏魍"
),
    2.0: (
    "伺僅劃呗哇堆夠屆層嵐巢幾橄檢淋烤爬爲獎獲瞭碗稅稻簋聽肝複覺誤譯跋邊銷錢颐"
),
    2.1: (
    "檔櫃蟹鱸"
),
    2.2: (
    "鶴"
),
    2.3: (
    "嶺鴨"
),
    2.4: (
    "櫚螢"
),
    2.7: (
    "螺蠢"
),
    2.8: (
    "嵌"
),
}
HAN_TOKENS = {char: tokens for tokens, chars in _HAN.items() for char in chars}
"""Han character -> its mean share of tokens."""

_KNOWN = {
    1: (
    "\tThe\n\tThis\n\tcase\n\tdata\n\tdefault\n\tfor\n\tif\n\tlist\n\toutput\n\tresult\n\treturn\n\tsession\n\tvar\n A\n ACTION\n ACT"
    "IVE\n AI\n ALL\n AM\n AN\n AND\n ANSI\n ANY\n API\n ARISING\n ASCII\n AWS\n Add\n All\n Anything\n Apache\n As\n B\n B"
    "ASIS\n BE\n BSD\n BUT\n BY\n C\n CA\n CAN\n CD\n CET\n CI\n CLI\n CONTRACT\n CPU\n Claude\n Code\n Copyright\n Could\n"
    " DAMAGES\n DATA\n DEBUG\n DNS\n DO\n Debian\n Default\n E\n EDIT\n ERROR\n EST\n EVENT\n FAQ\n FETCH\n FILE\n FITNE"
    "SS\n FOR\n FROM\n False\n Fix\n For\n GB\n GCC\n GNU\n GPL\n GTK\n GUI\n Gemini\n General\n Get\n HEAD\n HTML\n HTTP\n"
    " However\n I\n ID\n IDE\n II\n IMPLIED\n IN\n INCLUDING\n INFO\n IP\n IPv\n IS\n ISO\n If\n In\n Input\n Is\n It\n JPE"
    "G\n JSON\n KDE\n KIND\n Keep\n LDAP\n LIABILITY\n LIABLE\n LIMITED\n Let\n License\n Linux\n MIT\n MUST\n Markdown"
    "\n NAME\n NEW\n NO\n NOT\n NOTE\n NULL\n NVIDIA\n OF\n OK\n OR\n OS\n OTHER\n OTHERWISE\n OUT\n On\n Open\n PARTICULA"
    "R\n PASS\n PATH\n PC\n PM\n PR\n PURPOSE\n Package\n Please\n Post\n Postgre\n Public\n Python\n README\n RFC\n RGB"
    "\n RPC\n RSA\n RUN\n Returns\n SDK\n SHA\n SHALL\n SHOULD\n SOFTWARE\n SQL\n SSH\n SSL\n Security\n Software\n Swit"
    "ch\n System\n TCP\n THE\n THIS\n TLS\n TO\n TTL\n Test\n The\n Transcript\n U\n UI\n URI\n URL\n USB\n USE\n UTF\n UUI"
    "D\n Update\n Updated\n Use\n User\n V\n VS\n WARRANTIES\n WARRANTY\n WHETHER\n WITH\n WITHOUT\n We\n When\n Window"
    "s\n X\n XML\n YAML\n You\n a\n about\n absolute\n absolutely\n actually\n add\n address\n administrator\n after\n "
    "ag\n again\n against\n agent\n algorithm\n algorithms\n all\n allows\n almost\n already\n also\n always\n am\n am"
    "d\n an\n analysis\n analyze\n and\n another\n answer\n any\n anymore\n anything\n anyway\n api\n apt\n are\n argum"
    "ent\n arguments\n around\n as\n asks\n assistance\n async\n at\n attribute\n auto\n automatic\n automatically\n "
    "available\n b\n backup\n backward\n balance\n base\n based\n basic\n batch\n be\n beautiful\n because\n been\n be"
    "fore\n behavior\n being\n believe\n best\n better\n between\n big\n binary\n bit\n booking\n branch\n branches\n "
    "break\n budget\n bug\n build\n building\n built\n business\n but\n by\n c\n callback\n calls\n can\n canceled\n ca"
    "nnot\n catch\n cause\n cd\n cfg\n chalk\n change\n changes\n changing\n charset\n check\n checkpoint\n checkpoin"
    "ts\n checks\n children\n class\n cleanup\n cmd\n code\n color\n column\n command\n commands\n commit\n commits\n "
    "committed\n community\n complete\n computer\n condensation\n config\n configuration\n configure\n configured"
    "\n confirm\n conflict\n consider\n const\n contain\n contains\n continue\n cool\n copyright\n correct\n correct"
    "ly\n could\n cp\n create\n created\n creating\n creation\n current\n currently\n custom\n cwd\n d\n daemon\n data"
    "\n database\n date\n de\n debug\n debugger\n default\n defaults\n defined\n definitely\n der\n describe\n descri"
    "bed\n description\n details\n determine\n device\n dh\n different\n directly\n directory\n disable\n disconnec"
    "t\n display\n do\n docs\n documentation\n does\n doing\n download\n drawing\n due\n during\n e\n earlier\n early\n"
    " easy\n edge\n ein\n eine\n either\n el\n else\n empty\n en\n enable\n enabled\n end\n endpoint\n enjoy\n entire\n "
    "env\n environment\n err\n error\n es\n especially\n et\n etc\n everything\n exact\n exactly\n example\n examples"
    "\n except\n exec\n execute\n executed\n execution\n exist\n existing\n exists\n exit\n expected\n explicit\n exp"
    "licitly\n extra\n f\n failed\n failing\n fails\n failure\n failures\n fallback\n false\n family\n favorite\n fea"
    "ture\n features\n feedback\n feel\n feeling\n feels\n fetch\n fetching\n fields\n file\n files\n find\n fix\n fix"
    "ed\n fixes\n flag\n flags\n flight\n flights\n fmt\n for\n format\n forward\n found\n free\n friends\n from\n func"
    "tion\n functions\n game\n games\n gcc\n generated\n get\n getting\n git\n global\n goes\n going\n great\n grep\n g"
    "uide\n gzip\n handle\n handled\n handler\n handlers\n handles\n handling\n happy\n hardware\n has\n have\n he\n h"
    "elp\n helper\n helpful\n helps\n her\n here\n history\n hobbies\n hook\n hooks\n how\n href\n http\n https\n human"
    "\n i\n id\n if\n ignore\n implementation\n implementations\n implied\n import\n important\n in\n include\n inclu"
    "ded\n includes\n including\n info\n information\n initial\n inline\n input\n install\n installed\n installs\n i"
    "nstance\n instead\n insurance\n int\n interesting\n interface\n interfaces\n internal\n invalid\n involved\n i"
    "nvolves\n is\n issue\n it\n its\n itself\n journey\n just\n keep\n keeps\n kernel\n key\n keyword\n kids\n know\n k"
    "nowledge\n known\n l\n language\n le\n legacy\n len\n les\n let\n libc\n libraries\n library\n license\n life\n li"
    "fecycle\n like\n likely\n limited\n line\n lines\n link\n little\n llvm\n local\n location\n logging\n logs\n lon"
    "g\n look\n looking\n looks\n lot\n love\n machine\n make\n making\n manual\n manually\n margin\n markdown\n match"
    "\n matches\n matching\n maximum\n may\n maybe\n me\n meaningful\n means\n mechanism\n message\n messages\n metad"
    "ata\n methods\n might\n mini\n minimal\n mismatch\n missing\n mkdir\n modified\n modify\n more\n most\n much\n mu"
    "lti\n multiple\n must\n my\n myself\n n\n name\n names\n navigate\n necessary\n need\n needed\n needs\n network\n "
    "new\n nice\n nil\n node\n not\n nothing\n notice\n npm\n number\n numbers\n o\n object\n obtain\n obvious\n of\n of"
    "ficial\n offset\n ok\n old\n on\n one\n online\n only\n open\n optional\n options\n or\n origin\n original\n orpha"
    "n\n os\n other\n otherwise\n ou\n our\n out\n output\n over\n own\n package\n packages\n padding\n para\n paramete"
    "r\n params\n partner\n password\n patch\n path\n paths\n pattern\n patterns\n payload\n payment\n peaceful\n peo"
    "ple\n per\n perfect\n perfectly\n perform\n perhaps\n personal\n physical\n picture\n piece\n pizza\n pkg\n plan"
    "ning\n platform\n platforms\n playing\n please\n plumbing\n plural\n policy\n position\n possible\n previous\n "
    "previously\n printf\n priority\n private\n proceed\n program\n programs\n progress\n project\n projects\n prom"
    "pt\n properly\n provide\n provided\n public\n purpose\n python\n quickly\n r\n re\n reading\n reads\n ready\n rea"
    "lly\n reason\n received\n recently\n refs\n registry\n regular\n reject\n rejected\n related\n release\n releva"
    "nt\n remaining\n remember\n replace\n replaced\n repo\n report\n reports\n repository\n request\n require\n req"
    "uired\n requires\n reservation\n reservations\n resolve\n resolved\n resource\n response\n result\n results\n "
    "return\n returned\n returns\n review\n root\n run\n running\n runs\n s\n same\n scenario\n schedule\n schema\n sc"
    "ope\n script\n scripts\n se\n search\n section\n security\n see\n seeing\n segment\n segments\n self\n separate\n"
    " service\n services\n session\n sessions\n set\n setting\n settings\n setup\n several\n shadow\n she\n signal\n "
    "signature\n silently\n similar\n simple\n since\n single\n sitting\n situation\n skills\n skip\n skipping\n sli"
    "cing\n small\n snake\n so\n software\n someone\n something\n sounds\n source\n special\n specific\n specified\n "
    "specify\n spinner\n src\n standard\n start\n started\n state\n static\n status\n stderr\n stdin\n step\n steps\n "
    "straightforward\n strategy\n string\n strings\n struct\n structure\n stuff\n style\n submit\n subprocess\n sub"
    "sequent\n successfully\n suggests\n support\n supports\n switch\n symbols\n syntax\n system\n systems\n t\n tab"
    "le\n take\n talk\n target\n task\n tasks\n technical\n template\n terminal\n terms\n test\n that\n the\n their\n t"
    "hem\n then\n there\n things\n think\n thinking\n this\n those\n thread\n threads\n three\n through\n timeout\n to"
    "\n today\n together\n tools\n total\n track\n tracking\n trailer\n training\n transcript\n transcripts\n transf"
    "er\n travel\n true\n try\n two\n type\n un\n und\n under\n understand\n understanding\n unique\n unless\n unpack\n"
    " unrelated\n unsigned\n unstable\n up\n upcoming\n update\n updated\n updates\n updating\n upgrade\n upgraded\n"
    " upgrading\n upstream\n us\n usage\n use\n used\n user\n uses\n v\n value\n values\n variable\n verbose\n version"
    "\n versions\n very\n video\n virtual\n void\n vs\n vulnerable\n walking\n warning\n warnings\n was\n watch\n we\n "
    "web\n website\n week\n were\n when\n where\n which\n while\n width\n will\n with\n within\n without\n work\n workf"
    "low\n working\n works\n world\n would\n wrapper\n write\n writing\n written\n x\n xml\n y\n year\n years\n you\n yo"
    "ur\n yourself\n zu\n(a\n(agent\n(base\n(branch\n(buf\n(cmd\n(content\n(context\n(ctx\n(current\n(data\n(env\n(err\n("
    "input\n(int\n(key\n(line\n(lines\n(log\n(logging\n(map\n(message\n(metadata\n(milliseconds\n(msg\n(name\n(new\n(no"
    "de\n(options\n(opts\n(os\n(output\n(path\n(paths\n(ref\n(repo\n(result\n(s\n(self\n(session\n(settings\n(state\n(st"
    "ring\n(t\n(target\n(text\n(this\n(tmp\n(value\n(void\n(width\n,b\n,omitempty\n-Encoding\n-Mail\n-ROM\n-Type\n-US\n-V"
    "ersion\n-agent\n-api\n-auth\n-base\n-based\n-bin\n-bit\n-block\n-build\n-built\n-by\n-byte\n-cache\n-char\n-check\n-"
    "clean\n-cli\n-client\n-cloud\n-code\n-color\n-command\n-common\n-config\n-data\n-debug\n-default\n-dependent\n-de"
    "v\n-disable\n-doc\n-end\n-existent\n-existing\n-fetch\n-file\n-format\n-forward\n-free\n-friendly\n-generated\n-g"
    "et\n-go\n-height\n-help\n-highlight\n-http\n-id\n-image\n-in\n-info\n-inline\n-install\n-installed\n-key\n-l\n-left"
    "\n-level\n-like\n-line\n-linux\n-list\n-local\n-manager\n-message\n-msg\n-name\n-number\n-of\n-off\n-only\n-options"
    "\n-output\n-package\n-policy\n-project\n-python\n-r\n-readable\n-ref\n-reference\n-related\n-release\n-results\n-"
    "run\n-safe\n-schema\n-script\n-sdk\n-security\n-selector\n-server\n-session\n-settings\n-size\n-spec\n-specific\n"
    "-src\n-start\n-state\n-step\n-string\n-style\n-submit\n-tag\n-task\n-terminal\n-test\n-text\n-theme\n-time\n-to\n-t"
    "ools\n-turn\n-type\n-update\n-url\n-utils\n-variable\n-version\n-warning\n-way\n-weight\n-width\n-wrapper\n-x\n.Ag"
    "ent\n.Background\n.Base\n.Buffer\n.Close\n.Command\n.Config\n.Contains\n.Debug\n.Default\n.Dir\n.Error\n.Errorf\n"
    ".Exit\n.Fatal\n.Fatalf\n.Fprintf\n.Get\n.Getenv\n.Hash\n.ID\n.Info\n.Init\n.Initialize\n.Join\n.Marshal\n.Metadat"
    "a\n.Name\n.New\n.Parse\n.Printf\n.Raw\n.Read\n.Reference\n.Repository\n.Run\n.Session\n.Sprintf\n.State\n.String\n"
    ".T\n.Temp\n.Time\n.Token\n.Trim\n.UTF\n.User\n.With\n.Write\n.Writer\n.add\n.apache\n.append\n.build\n.c\n.cfg\n.cgi"
    "\n.cli\n.client\n.close\n.code\n.com\n.conf\n.config\n.content\n.create\n.d\n.data\n.de\n.default\n.diff\n.edu\n.ema"
    "il\n.entries\n.env\n.error\n.example\n.exe\n.exec\n.exists\n.flags\n.fr\n.g\n.get\n.git\n.github\n.gnu\n.go\n.google"
    "\n.gz\n.h\n.html\n.in\n.includes\n.info\n.input\n.io\n.is\n.join\n.jp\n.js\n.json\n.key\n.last\n.length\n.list\n.load\n"
    ".local\n.log\n.login\n.map\n.match\n.matches\n.md\n.message\n.mozilla\n.name\n.net\n.options\n.org\n.output\n.patc"
    "h\n.path\n.php\n.platform\n.png\n.push\n.py\n.read\n.render\n.replace\n.repo\n.request\n.resolve\n.search\n.serial"
    "ize\n.service\n.set\n.sh\n.slice\n.so\n.socket\n.split\n.start\n.state\n.status\n.stdout\n.substring\n.tar\n.targe"
    "t\n.test\n.text\n.to\n.tool\n.total\n.ts\n.txt\n.type\n.update\n.url\n.value\n.version\n.wikipedia\n.write\n.yml\n/L"
    "ICENSE\n/Linux\n/My\n/api\n/bash\n/bin\n/cgi\n/code\n/comments\n/common\n/components\n/config\n/context\n/control"
    "\n/core\n/data\n/debug\n/default\n/dev\n/dist\n/doc\n/docs\n/edit\n/etc\n/examples\n/git\n/github\n/go\n/history\n/h"
    "ooks\n/html\n/http\n/include\n/issues\n/json\n/kernel\n/latest\n/lib\n/licenses\n/linux\n/list\n/local\n/main\n/ma"
    "n\n/manual\n/message\n/network\n/node\n/npm\n/null\n/or\n/package\n/packages\n/pi\n/plain\n/projects\n/python\n/re"
    "pos\n/scripts\n/search\n/security\n/select\n/session\n/settings\n/setup\n/share\n/software\n/src\n/state\n/statu"
    "s\n/sys\n/system\n/test\n/tests\n/themes\n/tmp\n/tool\n/tools\n/types\n/update\n/usr\n/util\n/v\n/wiki\n/write\n=Fal"
    "se\n=True\n=UTF\n=false\n=true\n@example\n@gmail\nA\nAPI\nAS\nAbs\nAdd\nAfter\nAgent\nAll\nAlready\nAnalytics\nAnd\nAs"
    "ync\nAt\nAuthentication\nAuthor\nAuto\nAvailable\nB\nBE\nBSD\nBatch\nBefore\nBg\nBorder\nBranch\nBranches\nBuffer\nB"
    "uild\nBuilder\nBytes\nC\nCLI\nCalculate\nCallback\nCertificate\nCheckpoint\nChild\nChunk\nClaude\nClient\nCmd\nCod"
    "e\nCommand\nCommit\nCommitted\nCompletion\nComponent\nCompute\nConcurrent\nConfig\nConfiguration\nConnection\nC"
    "ontainer\nContent\nContext\nCopyright\nCount\nCreate\nCtx\nCurrent\nD\nDNS\nData\nDate\nDefault\nDefinition\nDelet"
    "e\nDelta\nDependencies\nDescription\nDetached\nDetails\nDir\nDirectory\nDistribution\nDocumentation\nDoes\nE\nEO"
    "F\nEnd\nEnded\nEndpoint\nEntire\nEnv\nEnvironment\nEqual\nException\nExisting\nExists\nExtract\nF\nFailure\nFallba"
    "ck\nFetching\nFile\nFiles\nFind\nFixed\nFlags\nFn\nFor\nFound\nFunction\nGNU\nGit\nGray\nH\nHOME\nHandler\nHooks\nI\nID"
    "\nII\nISO\nId\nIdentifier\nIdx\nIf\nImplement\nImplementation\nIn\nInfo\nInit\nInitialize\nInitializer\nInput\nInst"
    "all\nInstalled\nInstance\nIntegration\nInteraction\nInteractive\nInvalid\nIs\nIt\nItems\nJSON\nKey\nL\nLDAP\nLangu"
    "age\nLegacy\nLength\nLet\nLicense\nLine\nLines\nLink\nLinux\nLogger\nLooking\nM\nManager\nManual\nMarkdown\nMedium\n"
    "Message\nMessages\nMetadata\nMicrosoft\nMinimal\nMissing\nModel\nModified\nMsg\nMulti\nN\nName\nNot\nNotification"
    "\nNow\nNumber\nOK\nOS\nObject\nOffset\nOh\nOnly\nOptions\nOutput\nP\nParameter\nPath\nPayload\nPerfect\nPermission\nP"
    "lease\nPolicy\nPosition\nPost\nPre\nPreparing\nPrincipal\nProject\nPrompt\nProperties\nProtection\nQuote\nR\nRFC\n"
    "Reference\nRepo\nReport\nRepository\nReservation\nResource\nResponse\nResult\nRun\nRunning\nS\nSDK\nSHA\nSQL\nSSL\n"
    "Schema\nScript\nScripts\nSelection\nSelector\nSession\nSessions\nSetting\nSettings\nSetup\nShadow\nSoftware\nSou"
    "rce\nStart\nStarted\nState\nStatus\nStorage\nStrategy\nString\nStyle\nSubmit\nSuccess\nSuccessfully\nSync\nT\nTLS\n"
    "Tags\nTarget\nTask\nTemporary\nTest\nThank\nThanks\nThe\nThinking\nThis\nTimeout\nTimestamp\nTitle\nTodos\nTool\nTo"
    "uched\nTrailer\nTranscript\nTransform\nType\nU\nURL\nUUID\nUpdate\nUpdated\nUpdating\nUrl\nUsage\nUse\nUser\nUsers\n"
    "V\nValidation\nValue\nVersion\nW\nWaiting\nWarning\nWidth\nWindows\nWith\nWow\nWrite\nX\nXX\nY\nYeah\n[name\n[str\n[st"
    "ring\n\\n\n\\t\n_BLOCK\n_BR\n_CA\n_CHECK\n_CN\n_DEBUG\n_DEFAULT\n_DIR\n_END\n_ENV\n_ERROR\n_FILE\n_FUNC\n_From\n_ID\n_IN"
    "FO\n_INVALID\n_KEY\n_LOCAL\n_MAX\n_NAME\n_NO\n_No\n_OF\n_PATH\n_PROJECT\n_SELF\n_SET\n_SIZE\n_SOURCE\n_STRING\n_TEST"
    "\n_TRACE\n_TYPE\n_VALUE\n_VERSION\n_all\n_args\n_at\n_author\n_auto\n_backend\n_base\n_by\n_bytes\n_cache\n_card\n_c"
    "heck\n_checkpoint\n_class\n_client\n_close\n_cmd\n_code\n_command\n_commit\n_compile\n_config\n_content\n_contex"
    "t\n_count\n_create\n_data\n_default\n_delete\n_description\n_dir\n_empty\n_env\n_error\n_event\n_field\n_file\n_fi"
    "les\n_filter\n_fix\n_free\n_function\n_get\n_git\n_handlers\n_hash\n_history\n_hooks\n_id\n_info\n_init\n_input\n_k"
    "ey\n_keys\n_label\n_length\n_lib\n_line\n_lines\n_list\n_locations\n_logger\n_manager\n_matches\n_message\n_metad"
    "ata\n_method\n_mode\n_module\n_modules\n_ms\n_name\n_new\n_no\n_node\n_num\n_number\n_options\n_output\n_overlap\n_"
    "parameters\n_password\n_path\n_policy\n_prompt\n_raw\n_read\n_registry\n_reply\n_repo\n_request\n_resource\n_res"
    "ponse\n_result\n_results\n_root\n_run\n_seconds\n_security\n_session\n_set\n_size\n_spec\n_start\n_state\n_stats\n"
    "_status\n_string\n_style\n_t\n_target\n_test\n_text\n_threads\n_time\n_timeout\n_to\n_token\n_tokens\n_tool\n_trac"
    "e\n_turn\n_type\n_types\n_update\n_url\n_usage\n_user\n_value\n_version\n_with\n_write\na\naa\nabc\nadditional\naddr"
    "ess\nae\nalpha\nand\napi\napplication\nargs\nargv\navailable\nb\nbackup\nbash\nbasic\nbb\nbc\nbd\nbf\nbg\nbin\nbit\nbool"
    "ean\nbranch\nbugs\nbuild\nc\ncb\ncd\ncertificate\ncf\nchalk\ncheckpoint\nclass\ncmd\ncn\ncode\ncommand\ncommands\ncom"
    "ment\ncommit\ncompleted\ncomponents\nconfig\nconfigure\ncontent\ncount\ncreate\ncreated\ncurrent\ncyan\nd\ndark\nd"
    "ata\ndate\ndb\ndc\ndeb\ndebug\ndefault\ndependencies\ndescription\ndestination\ndev\ndeveloper\ndf\ndirectory\ndis"
    "able\ndiscard\ndns\ndocs\ndocumentation\ne\nem\nenv\netc\nexample\nexec\nexit\nexpected\nexport\nexports\nextract\nf"
    "\nfailed\nfalse\nfb\nfc\nfd\nff\nfields\nfile\nfirst\nfmt\nfn\nfor\nformat\nfp\nfunc\nfunction\ng\ngcc\ngh\ngit\ngithub\ng"
    "lobal\ngray\nh\nhandle\nhelp\nhooks\nhostname\nhtml\nhttp\nhttps\ni\nid\nif\nimport\nin\ninclude\nincluding\ninit\nini"
    "tialize\ninline\ninput\nint\ninterface\ninvalidate\nis\nit\njson\nk\nkey\nkwargs\nl\nlabel\nlanguage\nlast\nlegacy\nl"
    "i\nlike\nlimit\nline\nlines\nlink\nlinux\nlocal\nlocalhost\nlocation\nlogging\nm\nmanual\nmaybe\nmd\nmedium\nmessage"
    "\nmetadata\nmilliseconds\nmin\nmise\nmissing\nmodule\nn\nname\nnamespace\nnew\nno\nnode\nnot\nnpm\nnum\nnumber\no\nobj"
    "ect\noffset\nok\nold\nonly\noptions\nor\norganizations\norigin\nos\noutput\np\npackage\npackages\npaginate\nparam\np"
    "ath\npaths\npattern\npi\npkg\nproject\nprojects\nproperties\npx\npython\nq\nr\nregistry\nremaining\nreplace\nrepo\nr"
    "equired\nresult\nreturn\nrun\nruntime\ns\nscripts\nsearch\nsecurity\nsee\nself\nsession\nsettings\nsetup\nshutdown"
    "\nskip\nsource\nspan\nsrc\nstate\nstatus\nstrategy\nstring\nstrings\nstruct\nsubject\nsummary\nsvn\nsyntax\nsystem\n"
    "t\ntable\ntarget\ntask\ntcp\ntd\ntemplate\nterminal\ntest\ntesting\nthat\nthe\nthinking\nthis\ntimeout\ntimestamp\nt"
    "itle\ntmp\ntool\ntotal\ntrue\ntype\ntypescript\nu\nundefined\nunique\nunknown\nupdate\nurl\nuser\nusr\nutf\nv\nvalue\n"
    "verbose\nversion\nview\nvoid\nw\nwarning\nwhich\nwidth\nwrite\nwww\nx\ny\nyes"
),
    2: (
    "\tWhen\n\tagent\n APT\n Checkpoint\n Checkpoints\n Closes\n Committed\n Condense\n Configuring\n Copilot\n DVI\n "
    "ENDED\n ENTIRE\n Ended\n Fixes\n GNOME\n Gnu\n Grep\n IDLE\n Implemented\n JSONL\n Makefile\n NFS\n PKCS\n POSIX\n"
    " PRs\n Replaced\n Revert\n Rewind\n Simulate\n Specifying\n Staged\n Suggests\n TUI\n Texinfo\n Unused\n Verifi"
    "es\n adduser\n alphanumeric\n backfill\n binutils\n bzip\n cancels\n changelog\n chown\n chroot\n claude\n clea"
    "nly\n cmake\n codebase\n compiles\n condense\n condenses\n coreutils\n customizations\n debconf\n debian\n dec"
    "ompression\n defaulting\n deletions\n dereference\n docstring\n dpkg\n duplicating\n fixups\n flushes\n gclou"
    "d\n gemini\n gitignore\n gnome\n gofmt\n gpg\n groff\n hardcoded\n indented\n insertions\n interactively\n iter"
    "ates\n linter\n maintainer\n maintainers\n manpages\n mtime\n octal\n openssl\n orphaned\n overwrites\n postho"
    "g\n rebase\n rebased\n refactor\n renaming\n reproducing\n resuming\n scoping\n serializes\n sshd\n subagent\n "
    "subagents\n subcommand\n subcommands\n subdirectory\n symlink\n systemd\n tarball\n timeouts\n truncation\n u"
    "dev\n umask\n unconditionally\n unpacked\n unpacking\n untracked\n versioned\n worktree\n worktrees\n(entire\n"
    "(hook\n(transcript\n+deb\n-By\n-Checkpoint\n-abc\n-amd\n-apply\n-args\n-branch\n-checkpoint\n-coding\n-commit\n-c"
    "omplete\n-daemon\n-effort\n-entire\n-explain\n-fixes\n-flag\n-git\n-licenses\n-lint\n-merge\n-mime\n-nil\n-ops\n-p"
    "ackages\n-parse\n-prompt\n-push\n-reminder\n-repo\n-rw\n-sessions\n-turbo\n-xr\n.Checkpoint\n.Entire\n.Fprintln\n"
    ".Hook\n.Logf\n.Plain\n.Reason\n.Repo\n.Shadow\n.Silent\n.Started\n.Stderr\n.Storer\n.Strategy\n.Transcript\n.deb"
    "\n.debian\n.perl\n.rst\n.usage\n/Person\n/README\n/USER\n/Work\n/agent\n/apt\n/auto\n/checkpoint\n/checkpoints\n/c"
    "lean\n/cli\n/cmd\n/coding\n/commit\n/dpkg\n/explain\n/fish\n/heads\n/hook\n/hosts\n/integration\n/ld\n/locale\n/mi"
    "se\n/opt\n/phase\n/plans\n/posthog\n/proc\n/prompts\n/pull\n/pulls\n/resume\n/rfc\n/rules\n/sbin\n/sessions\n/sour"
    "ces\n/strategy\n/summary\n/vi\n/wks\n/workspace\n/zh\n:amd\n:assert\n:ci\n@lists\nAPIKey\nBash\nCheckpoints\nCommi"
    "ts\nCondense\nDebian\nENTIRE\nGemini\nGrep\nHog\nIDWith\nLanes\nPOSIX\nPrompts\nRewind\nSimulate\nStale\nSubagent\n"
    "Untracked\n[bot\n\\tif\n\\treturn\n]bool\n_COMMITTED\n_Mid\n_TW\n_amd\n_compressor\n_rewind\n_workflow\nclaude\ncon"
    "dense\ncondensed\ndebian\nentire\nexplain\ngemini\ngitignore\njsonl\nnolint\nnpmcli\nplumbing\nposix\nrewind\nsta"
    "ged\nsubagent\nsyscall\nsystemd\ntelemetry\ntif\ntranscript\ntruecolor\nworktrees\nxterm"
),
    3: (
    " CLAUDE\n autoconf\n booleans\n claudecode\n deprecate\n geminicli\n glibc\n gnupg\n idempotency\n idempotent"
    "\n interleaved\n libnss\n symlinks\n uncommitted\n+dfsg\n-alternatives\n-telemetry\n.Claude\n.Condensed\n.Prom"
    "pts\n.claude\n.freedesktop\n.gpgsign\n/CHANGELOG\n/Makefile\n/claude\n/committed\n/devenv\n/entire\n/gemini\n/r"
    "ewind\n/telemetry\n/trailers\n/wingman\n:gosec\n@debian\nCLAUDE\nCLIAgent\nOrphaned\nSTRATEGY\nXSLT\n_OPTOUT\n_P"
    "reserves\n_claudecode\n_externally\nclaudecode\ndrwxr\nfsprogs\ngeminicli\ngraceful"
),
    4: (
    "-multisession\n/claudecode\n/entireio\n/geminicli\nREDACTED\n_CLAUDE\n_TELEMETRY\n_geminicli"
),
}
KNOWN_PIECES = {piece: tokens for tokens, pieces in _KNOWN.items() for piece in pieces.split("\n")}
"""Common piece that the rest of the model misjudges -> its tokens."""
